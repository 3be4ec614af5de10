"""Table settings: parses raw values into frozen dataclasses and reports all problems in one error."""
