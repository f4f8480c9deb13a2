"""What both QTI packages are made with: names, and a zip that has the same bytes every time."""

import io
import zipfile
from xml.etree import ElementTree as ET

XSI = "http://www.w3.org/2001/XMLSchema-instance"


def root(tag: str, namespace: str, schema: str, **attributes: str) -> ET.Element:
    """An element that its document begins with, in a namespace of which all below it are."""
    location = {"xmlns": namespace, "xmlns:xsi": XSI, "xsi:schemaLocation": f"{namespace} {schema}"}
    return ET.Element(tag, location | attributes)


def document(element: ET.Element) -> bytes:
    return ET.tostring(element, "UTF-8", xml_declaration=True) + b"\n"


def package(files: dict[str, bytes]) -> bytes:
    """A zip of the files, the manifest first, without a time of its own."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in sorted(files, key=lambda name: (name != "imsmanifest.xml", name)):
            entry = zipfile.ZipInfo(name)  # of 1 January 1980
            entry.external_attr = 0o644 << 16  # who may read it, on a system that asks
            archive.writestr(entry, files[name], zipfile.ZIP_DEFLATED)
    return buffer.getvalue()
