"""The real brokers that tests publish to: started here, killed here, on loopback."""
