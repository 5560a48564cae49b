"""What callers give: the rules of parameters, arrays, labels, saved states, random numbers."""
