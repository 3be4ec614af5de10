"""What operations print: text for people, JSON for programs."""
