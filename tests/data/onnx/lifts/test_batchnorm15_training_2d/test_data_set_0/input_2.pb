Binput_2JET¿	ª¾
ˆE¾