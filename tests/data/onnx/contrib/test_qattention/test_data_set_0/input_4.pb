Binput_4J
×#<