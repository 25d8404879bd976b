"""Random graphs by family: `maker` is what they share; each other module has `make(seed)`."""
