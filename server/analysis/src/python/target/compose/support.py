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
        self.gpu = "cuda" in repr(calls) or (state is not None and "cuda" in repr(state))
        self.instances = {}

    def __call__(self, owner, *arguments):
        if self.compiling() or torch.jit.is_tracing() or self.autocast() or (self.tried and self.made is None):
            return NotImplemented
        tensors = []
        try:
            if tuple(self.seen(argument, tensors) for argument in arguments) not in self.calls:
                return NotImplemented
        except TypeError:
            return NotImplemented
        if owner is not None:
            known = self.instances.get(id(owner))
            if known is None or known.owner() is not owner or not known.is_unchanged(owner):
                known = self.looked_at(owner)
                if known is None:
                    return NotImplemented
            tensors += known.tensors
        if torch.autograd.forward_ad._current_level >= 0:
            return NotImplemented
        if not self.gradients and torch.is_grad_enabled() and any([tensor.requires_grad for tensor in tensors]):
            return NotImplemented
        if self.gpu and not self.is_current(tensors) or self.build() is None:
            return NotImplemented
        call = self.made if owner is None else known.forward or self.instance(owner, known)
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

    def looked_at(self, owner):
        """Whether a module is of the class, state and settings that were verified: what later calls compare it with, or None."""
        parts = list(owner.named_modules())
        training = owner.training
        if (type(owner).__module__, type(owner).__qualname__) != (__name__, self.name) or training not in self.training:
            return None
        if not all(hasattr(owner, name) for name in self.needs):
            return None
        for _, part in parts:
            hooked = part is not owner and (part._forward_hooks or part._forward_pre_hooks or part._backward_hooks)
            if part.training is not training or hooked:
                return None
        tensors = []
        kept, beside = self.held(owner)
        state = {name: self.seen(tensor, tensors) for name, tensor in kept}
        if self.state is not None and state not in self.state:
            return None
        tensors = list({id(tensor): tensor for tensor in itertools.chain(tensors, map(operator.itemgetter(1), beside))}.values())
        if self.settings is not None and self.settings_of(parts, self.added) not in self.settings:
            return None
        key, instances = id(owner), self.instances
        known = instances[key] = _Known(weakref.ref(owner, lambda _: instances.pop(key, None)), owner, tensors)
        return known

    @staticmethod
    def held(module):
        """The tensors of a module under all names that they have: those of its state dictionary, and the buffers that are not in it."""
        kept, beside = [], []
        for path, part in module.named_modules(remove_duplicate=False):
            own = vars(part)
            for name, tensor in itertools.chain(own["_parameters"].items(), own["_buffers"].items()):
                if tensor is not None:
                    (beside if name in own["_non_persistent_buffers_set"] else kept).append((f"{path}.{name}" if path else name, tensor))
        return kept, beside

    @classmethod
    def settings_of(cls, parts, added=()):
        """The classes and plain attributes of a module's parts, which of its tensors are one, and the types and shapes of buffers that are
        not in its state dictionary, as a text that is the same in every process."""
        common = cls.common()
        lines = []
        for path, part in parts:
            own = common if path else common.union(added)
            plain = sorted((key, cls.plain(value)) for key, value in vars(part).items() if key not in own)
            lines.append((path, type(part).__name__, [(key, text) for key, text in plain if text]))
        kept, beside = cls.held(parts[0][1])
        beside, first = [(name, tensor) for name, tensor in beside if name not in added], {}
        tied = [(name, first.setdefault(id(tensor), name)) for name, tensor in kept + beside]
        tied = [(name, other) for name, other in tied if name != other]
        if tied or beside:
            lines.append((tied, [(name, cls.seen(tensor, [])) for name, tensor in beside]))
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

    def instance(self, owner, known):
        """The verified `forward`, on an object that shares all attributes of the module and keeps its own in slots."""
        made = self.made.__new__(self.made)
        object.__setattr__(made, "__dict__", vars(owner))
        if hasattr(self.made, "_set_up"):
            made._set_up()
        known.forward = made.forward
        return known.forward

    @classmethod
    def share(cls, part, classes):
        """A part of a module as one of the candidate's class, on the same attributes; what holds parts is one that holds such."""
        made, own = classes.get(type(part).__name__), vars(part)
        if made is None and type(part) not in (torch.nn.ModuleList, torch.nn.ModuleDict, torch.nn.Sequential):
            return part
        shared = object.__new__(made or type(part))
        if made is None:
            own = {**own, "_modules": {name: cls.share(one, classes) for name, one in own["_modules"].items()}}
        object.__setattr__(shared, "__dict__", own)
        if hasattr(made, "_set_up"):
            shared._set_up()
        return shared

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


class _Known:
    """A module as it was when it was found to be what was verified, so that the next call only asks whether that is still so.

    What modules hold is compared by identity, names and values; lists, which may change and stay the same objects, by their text; tensors, whose
    data may be exchanged, by what a guard compares of them and where they lie.
    """

    __slots__ = ("owner", "kind", "children", "kinds", "hooks", "tables", "count", "names", "values", "lists", "tensors", "data", "forward")

    def __init__(self, owner, module, tensors):
        self.owner, self.kind, self.tensors, self.forward = owner, type(module), tensors, None
        self.children = [part for part in module.modules() if part is not module]
        self.kinds = [type(part) for part in self.children]
        self.hooks = [table for part in self.children for table in (part._forward_hooks, part._forward_pre_hooks, part._backward_hooks)]
        own = [vars(part) for part in (module, *self.children)]
        self.tables = [table for held in own for table in (held, held["_parameters"], held["_buffers"], held["_modules"])]
        self.count = sum(map(len, self.tables))
        self.names = list(itertools.chain.from_iterable(self.tables))
        self.values = list(itertools.chain.from_iterable(map(dict.values, self.tables)))
        self.lists = [(value, _Verified.plain(value)) for held in own for value in held.values() if type(value) in (list, tuple)]
        self.data = self.described()

    def described(self):
        return [(tensor.dtype, tensor.device, tensor.shape, tensor.data_ptr(), tensor.is_contiguous()) for tensor in self.tensors]

    def is_unchanged(self, module):
        chain, same = itertools.chain.from_iterable, operator.is_
        return (
            type(module) is self.kind
            and sum(map(len, self.tables)) == self.count
            and all(map(same, chain(map(dict.values, self.tables)), self.values))
            and all(map(same, chain(self.tables), self.names))
            and all(map(same, map(type, self.children), self.kinds))
            and not any(self.hooks)
            and self.described() == self.data
            and all([_Verified.plain(value) == text for value, text in self.lists])
        )
