"""What a teacher draws: the chapters' tensors as boxes, operations as arrows, weights as widths.

Each function returns a `Drawing`, painted from tensors: a wrong number in one is a wrong number in
a tensor.
"""

from attention.drawings.chunk_by_chunk import chunk_by_chunk
from attention.drawings.clock_hands import clock_hands
from attention.drawings.cone import cone
from attention.drawings.cut_into_heads import cut_into_heads
from attention.drawings.decode_step import decode_step
from attention.drawings.distance_waves import distance_waves
from attention.drawings.drawing import Drawing
from attention.drawings.erase_then_write import erase_then_write
from attention.drawings.four_caches import four_caches
from attention.drawings.gradients_way_back import gradients_way_back
from attention.drawings.heads_add import heads_add
from attention.drawings.ladder import ladder
from attention.drawings.listening import listening
from attention.drawings.logit_by_head import logit_by_head
from attention.drawings.loss_of_share import loss_of_share
from attention.drawings.mask_after_softmax import mask_after_softmax
from attention.drawings.mask_before_softmax import mask_before_softmax
from attention.drawings.merging import merges, merging
from attention.drawings.module_map import module_map
from attention.drawings.query_and_keys import query_and_keys
from attention.drawings.readers_and_writer import readers_and_writer
from attention.drawings.residual_stream import residual_stream
from attention.drawings.roofline import roofline
from attention.drawings.same_average import same_average
from attention.drawings.score_by_seat import score_by_seat
from attention.drawings.score_in_parts import score_in_parts
from attention.drawings.softmax_steps import softmax_steps
from attention.drawings.sort_cut_look import sort_cut_look
from attention.drawings.teacher_forcing import teacher_forcing
from attention.drawings.three_projections import three_projections
from attention.drawings.two_clocks import two_clocks
from attention.drawings.two_memories import two_memories
from attention.drawings.two_readers import two_readers
from attention.drawings.two_stories import two_stories
from attention.drawings.two_towers import two_towers
from attention.drawings.view_then_transpose import view_then_transpose
from attention.drawings.weight_on_pads import weight_on_pads
from attention.drawings.weighted_sum import weighted_sum
from attention.drawings.weights_by_size import weights_by_size
from attention.drawings.which_one import which_one
from attention.drawings.who_asks import who_asks
from attention.drawings.word_and_place import word_and_place
from attention.drawings.write_match_copy import write_match_copy
from attention.drawings.writing_steps import writing_steps

__all__ = [
    "Drawing",
    "chunk_by_chunk",
    "clock_hands",
    "cone",
    "cut_into_heads",
    "decode_step",
    "distance_waves",
    "erase_then_write",
    "four_caches",
    "gradients_way_back",
    "heads_add",
    "ladder",
    "listening",
    "logit_by_head",
    "loss_of_share",
    "mask_after_softmax",
    "mask_before_softmax",
    "merges",
    "merging",
    "module_map",
    "query_and_keys",
    "readers_and_writer",
    "residual_stream",
    "roofline",
    "same_average",
    "score_by_seat",
    "score_in_parts",
    "softmax_steps",
    "sort_cut_look",
    "teacher_forcing",
    "three_projections",
    "two_clocks",
    "two_memories",
    "two_readers",
    "two_stories",
    "two_towers",
    "view_then_transpose",
    "weight_on_pads",
    "weighted_sum",
    "weights_by_size",
    "which_one",
    "who_asks",
    "word_and_place",
    "write_match_copy",
    "writing_steps",
]
