"""What both QTI packages are made with: names, a manifest, and a zip that it comes first in."""

import io
from xml.etree import ElementTree as ET

from tools.zips import write_zip

MANIFEST = "imsmanifest.xml"
XSI = "http://www.w3.org/2001/XMLSchema-instance"


def root(tag: str, namespace: str, schema: str, **attributes: str) -> ET.Element:
    """An element that its document begins with, in a namespace of which all below it are."""
    location = {"xmlns": namespace, "xmlns:xsi": XSI, "xsi:schemaLocation": f"{namespace} {schema}"}
    return ET.Element(tag, location | attributes)


def document(element: ET.Element) -> bytes:
    return ET.tostring(element, "UTF-8", xml_declaration=True) + b"\n"


def manifest_of(
    namespace: str, schema: str, kind: str, version: str
) -> tuple[ET.Element, ET.Element]:
    """The manifest of a package, and the element in it that lists what the package holds."""
    manifest = root("manifest", namespace, schema, identifier="attention-head-by-head")
    metadata = ET.SubElement(manifest, "metadata")
    ET.SubElement(metadata, "schema").text = kind
    ET.SubElement(metadata, "schemaversion").text = version
    ET.SubElement(manifest, "organizations")
    return manifest, ET.SubElement(manifest, "resources")


def package(files: dict[str, bytes]) -> bytes:
    """A zip of the files, the manifest first, without a time of its own."""
    buffer = io.BytesIO()
    ordered = sorted(files, key=lambda name: (name != MANIFEST, name))
    write_zip(buffer, {name: files[name] for name in ordered})
    return buffer.getvalue()
