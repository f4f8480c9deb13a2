"""What a layer costs, counted."""
