"""Names that deploy/ uses before phimapd has them. Delete each when it is there."""

NOT_YET = set()
