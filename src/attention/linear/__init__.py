"""No pairs: attention in time and memory that grow with the length, not its square."""
