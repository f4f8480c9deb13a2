"""What a teacher draws: the chapters' tensors as boxes, operations as arrows, weights as widths.

Each function returns a `Drawing`, painted from tensors: a wrong number in one is a wrong number in
a tensor.
"""

from attention.drawings.drawing import Drawing
from attention.drawings.module_map import module_map

__all__ = ["Drawing", "module_map"]
