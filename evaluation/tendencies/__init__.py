"""Statistical tendencies of text (Meister & Cotterell 2021), compared with other text or with exact distributions."""
