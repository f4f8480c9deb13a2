"""Attention in recurrent networks, as it was before transformers."""
