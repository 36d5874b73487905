"""What is wrong: with settings, with health, with the setup of the exporter, with switches."""
