"""Names of flags that deploy/ already uses although phimapd does not have them yet. Delete a name from here when
phimapd has it."""

NOT_YET = set()
