"""The transformer: feed-forward layer, encoder, decoder, and the whole model."""
