"""Models of everything a user writes by hand."""
