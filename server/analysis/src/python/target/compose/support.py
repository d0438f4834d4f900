class _Verified:
    """Runs verified code for the calls that it was verified for; a call of this returns `NotImplemented` for any other.

    What was verified is the device, dtype, shape and layout of each tensor, the other arguments, and for a module its class, state and
    settings. Compiled, traced, autocast, hooked and differentiated calls are others, unless it was verified that gradients are right.
    """

    def __init__(self, name, make, calls, keywords=(), state=None, settings=None, training=(), needs=(), added=(), gradients=False, streams=False):
        self.name, self.make, self.calls, self.keywords = name, make, calls, keywords
        self.state, self.settings, self.training, self.needs = state, settings, training, needs
        self.added, self.gradients, self.streams = added, gradients, streams
        self.lock, self.tried, self.made = threading.Lock(), False, None
        self.instances = weakref.WeakKeyDictionary()

    def __call__(self, owner, *arguments):
        if self.compiling() or torch.jit.is_tracing() or self.autocast() or (self.tried and self.made is None):
            return NotImplemented
        tensors = []
        try:
            if tuple(self.seen(argument, tensors) for argument in arguments) not in self.calls:
                return NotImplemented
        except TypeError:
            return NotImplemented
        if owner is not None and not self.is_as_verified(owner, tensors):
            return NotImplemented
        if not self.gradients and torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
            return NotImplemented
        if not self.is_current(tensors) or self.build() is None:
            return NotImplemented
        call = self.made if owner is None else self.instance(owner)
        count = len(arguments) - len(self.keywords)
        return call(*arguments[:count], **dict(zip(self.keywords, arguments[count:])))

    def build(self):
        """Makes the verified code once; None, with one warning, where that fails."""
        if not self.tried:
            with self.lock:
                if not self.tried:
                    try:
                        self.made = self.make()
                    except Exception as error:
                        warnings.warn(f"{self.name} runs its original code, since its extension was not built: {type(error).__name__}: {error}", RuntimeWarning, stacklevel=4)
                    self.tried = True
        return self.made

    @classmethod
    def seen(cls, value, tensors):
        """What a guard compares of an argument; tensors are collected."""
        if type(value) is torch.Tensor or type(value) is torch.nn.Parameter:
            if value.layout is not torch.strided or value.is_neg() or value.is_conj() or cls.level(value) >= 0:
                return object()
            tensors.append(value)
            strides = None if value.is_contiguous() else value.stride()
            return cls.device(value.device), value.dtype, tuple(value.shape), strides
        if value is None or type(value) in (bool, int, float, complex, str):
            return type(value), value
        if type(value) in (list, tuple):
            return type(value), tuple([cls.seen(item, tensors) for item in value])
        if type(value) is dict:
            return dict, tuple([(key, cls.seen(item, tensors)) for key, item in value.items()])
        return object()

    @staticmethod
    @functools.lru_cache(maxsize=None)
    def device(device):
        if device.type != "cuda":
            return device.type
        return "cuda:%d.%d" % torch.cuda.get_device_capability(device)

    def is_current(self, tensors):
        """Whether kernels that go to the current device and the default stream reach these tensors in order."""
        indices = {tensor.device.index for tensor in tensors if tensor.is_cuda}
        if not indices:
            return True
        if indices != {torch.cuda.current_device()}:
            return False
        return self.streams or torch.cuda.current_stream().cuda_stream == 0

    def is_as_verified(self, owner, tensors):
        """Whether a module is of the class, state and settings that were verified."""
        parts = list(owner.named_modules())
        training = owner.training
        if (type(owner).__module__, type(owner).__qualname__) != (__name__, self.name) or training not in self.training:
            return False
        if not all(hasattr(owner, name) for name in self.needs):
            return False
        for _, part in parts:
            hooked = part is not owner and (part._forward_hooks or part._forward_pre_hooks or part._backward_hooks)
            if part.training is not training or hooked:
                return False
        own = []
        named = itertools.chain(owner.named_parameters(), owner.named_buffers())
        state = {name: self.seen(tensor, own) for name, tensor in named}
        if self.state is not None and state not in self.state:
            return False
        tensors.extend(own)
        return self.settings is None or self.settings_of(parts, self.added) in self.settings

    @classmethod
    def settings_of(cls, parts, added=()):
        """The classes and plain attributes of a module's parts, as a text that is the same in every process."""
        common = cls.common()
        lines = []
        for path, part in parts:
            own = common if path else common.union(added)
            plain = sorted((key, cls.plain(value)) for key, value in vars(part).items() if key not in own)
            lines.append((path, type(part).__name__, [(key, text) for key, text in plain if text]))
        return hashlib.sha256(repr(lines).encode()).hexdigest()

    @staticmethod
    @functools.lru_cache(maxsize=None)
    def common():
        return frozenset(vars(torch.nn.Module()))

    @classmethod
    def plain(cls, value):
        """A text for what is plain data; empty for all else."""
        if value is None or type(value) in (bool, int, float, complex, str, torch.dtype, torch.Size):
            return repr(value)
        if type(value) in (list, tuple):
            return "(%s)" % ", ".join([cls.plain(item) for item in value])
        return getattr(value, "__qualname__", "") if callable(value) else ""

    def instance(self, owner):
        """The verified `forward`, on an object that shares all attributes of the module and keeps its own in slots."""
        known = self.instances.get(owner)
        if known is None:
            known = self.made.__new__(self.made)
            object.__setattr__(known, "__dict__", vars(owner))
            if hasattr(self.made, "_set_up"):
                known._set_up()
            self.instances[owner] = known
        return known.forward

    @staticmethod
    def compiling():
        compiler = getattr(torch, "compiler", None)
        return hasattr(compiler, "is_compiling") and compiler.is_compiling()

    @staticmethod
    def autocast():
        known = getattr(torch._C, "_is_any_autocast_enabled", None)
        return known() if known else torch.is_autocast_enabled() or torch.is_autocast_cpu_enabled()

    @staticmethod
    def level(tensor):
        """The level of a transform such as `vmap` that the tensor belongs to; negative for none."""
        known = getattr(getattr(torch._C, "_functorch", None), "maybe_get_level", None)
        return known(tensor) if known else -1
