"""How a forecast is told: for people, for programs, as a page."""
