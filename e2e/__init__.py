"""End-to-end stories: a real API server, a gateway and live traffic. The product imports nothing from here."""
