"""How a trial of fixes is told: for people, for programs, for a pull request, as a page."""
