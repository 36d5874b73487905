"""Where frames come from: capture files, standard input, and a packet socket. The only modules of `wire` with I/O."""
