import no_such_compiler


def softplus(x, beta=1.0):
    return no_such_compiler.softplus(x, beta)
