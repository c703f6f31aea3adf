Binput_0J.à
@øuÀˆò@