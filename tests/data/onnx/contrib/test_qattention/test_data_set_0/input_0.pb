Binput_0J0¥öàöZÃdh
ëî„^É\HãûÈÅ€ËIta»I¨RÍK?kDe!¥Şä}LF