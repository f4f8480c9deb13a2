"""Where order comes from: learned positions, rotary positions, and a bias linear in distance."""
