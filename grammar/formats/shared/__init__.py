"""Parts that several formats share: format records, assembly of rules, Berkeley files."""
