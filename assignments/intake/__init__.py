"""What was handed in: its files, who they are from, and which of them are graded."""
