"""A process that runs a person's code for one role in one verification, and does what the parent asks, one request after the other."""
from __future__ import annotations

import faulthandler
import platform
import sys
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import torch

from . import baseline, building, calls, drawing, limits, loading, making, moving, oracle, profiling, simulated, timing, values
from . import captured as own
from .errors import Refused, describe
from .wire import Channel

Flat = values.Flat


class Session:
    """What one child knows."""

    def __init__(self, device: str, channel: Channel) -> None:
        self._device, self._channel = own.Device(device), channel
        self._stage = "starting"
        self._watch = own.Watch()
        self._request: Dict[str, Any] = {}
        self._loaded: Optional[loading.Loaded] = None
        self._file: Any = None
        self._function: Any = None
        self._held: Dict[str, Flat] = {}
        self._drawing = drawing.Drawing(making.default_of(self._device))
        self._sizes: List[int] = []
        self._inputs: List[Any] = []
        self._sets: Optional[timing.Sets] = None
        self._last: Optional[Flat] = None
        self._seed = 0
        self._regions = values.Regions(self._device)
        self._returned = calls.Returned()
        #: The outputs of the last call, for the next one that is asked to repeat it.
        self._before: Optional[Flat] = None

    def answer(self, request: Dict[str, Any], descriptors: List[int]) -> Dict[str, Any]:
        """Does what is asked. Whatever the person's code raises becomes part of the answer."""
        known: Dict[str, Callable[..., Dict[str, Any]]] = {
            "load": self._load, "draw": self._draw, "state": self._state, "set_state": self._set_state, "call": self._call,
            "oracle": self._oracle, "prepare": self._prepare, "set": self._set, "time": self._time, "last": self._last_output,
            "compile": self._compile, "profile": self._profile, "put": self._put, "rest": lambda *_: {}, "warm": self._warm,
        }
        try:
            self._stage = str(request["do"])
            if not self._device.is_cuda and request["do"] != "time":
                limits.renew()
            self._regions.drop(request.get("drop", ()))
            self._regions.take_in(request.get("regions", ()), descriptors)
            reply = known[request["do"]](request, descriptors)
            reply["ok"] = True
            return reply
        except BaseException as error:  # SystemExit and KeyboardInterrupt are as good as any other
            return {"ok": False, "error": describe(error, self._stage, self._device.name)}

    def _at(self, stage: str) -> None:
        self._stage = stage

    def _need(self) -> loading.Loaded:
        if self._loaded is None:
            raise Refused("nothing is loaded")
        return self._loaded

    def _types(self, name: str) -> Any:
        return getattr(self._file, name, None)

    def _take(self, described: Dict[str, Any], name: str, places: Sequence[Any] = ()) -> List[Any]:
        """New tensors on the device with the bytes of a region; in the memory of those that are given, where they fit there."""
        region = self._regions.of(name)
        specs = described["tensors"]
        with own.no_grad():
            if len(places) == len(specs):
                tensors = [values.renewed(place, spec, region, self._device.torch) for place, spec in zip(places, specs)]
            else:
                tensors = [values.fresh(spec, region, self._device.torch) for spec in specs]
        self._device.wait()
        return tensors

    def _load(self, request: Dict[str, Any], _: List[int]) -> Dict[str, Any]:
        if self._loaded is not None:
            raise Refused("something is loaded already")
        self._request = request
        if request.get("passes_for_gpu"):
            simulated.pass_for_gpu()
        if request.get("assisted"):
            simulated.build_elsewhere(self._channel)
        self._warm_up()

        def prepare() -> None:
            if request.get("builds"):
                building.build_elsewhere(self._channel)

        loaded, self._file = loading.load(request, self._device, self._at, prepare)
        self._loaded, self._function = loaded, loaded.function
        module = loaded.module

        def described(items: Any) -> List[Dict[str, Any]]:
            return [{"name": name, "dtype": values.dtype_name(own.dtype_of(value)), "shape": list(own.size_of(value))} for name, value in items]

        return {
            "kind": loaded.kind, "name": loaded.name, "seconds": loaded.seconds, "versions": self._versions(),
            "settings": loading.settings(request.get("settings_script"), module),
            "training": bool(module.training) if module is not None else None,
            "parameters": described(module.named_parameters()) if module is not None else [],
            "buffers": described(module.named_buffers()) if module is not None else [],
            "changed": self._watch.changed(), "made": loaded.made,
        }

    def _warm(self, _: Dict[str, Any], __: List[int]) -> Dict[str, Any]:
        self._warm_up()
        return {}

    def _warm_up(self) -> None:
        """Begins CUDA and torch's own threads, so that they are not taken for the person's."""
        self._stage = "starting torch on %s" % self._device.name
        own.zero_(own.empty((1 << 16,), device="cpu")).add_(1).sum()
        self._device.wait()
        self._watch = own.Watch()

    def _versions(self) -> Dict[str, Any]:
        device = torch.cuda.get_device_name() if self._device.is_cuda else platform.processor() or platform.machine()
        return {"python": platform.python_version(), "torch": str(torch.__version__), "cuda": torch.version.cuda, "device": device}

    def _draw(self, request: Dict[str, Any], _: List[int]) -> Dict[str, Any]:
        self._need()
        self._stage = "drawing inputs"
        cases = self._request["subject"]["cases"]
        if not 0 <= request["case"] < len(cases):
            raise Refused("case %d of %d" % (request["case"], len(cases)))
        case = cases[request["case"]]
        with own.no_grad():
            positional, named, where = self._drawing.draw(case, self._file, request["seed"], request.get("on_device", True))
        self._device.wait()
        reply = self._hold("inputs", values.pack_arguments(positional, named))
        reply["made"] = where
        return reply

    def _hold(self, name: str, flat: Flat) -> Dict[str, Any]:
        """Keeps values until they are fetched, and describes them."""
        self._held[name] = flat
        return {"values": flat.values()}

    def _state(self, _: Dict[str, Any], __: List[int]) -> Dict[str, Any]:
        self._stage = "reading the state"
        return self._hold("state", values.flatten_named(calls.state_items(self._need().module), "the state"))

    def _set_state(self, request: Dict[str, Any], descriptors: List[int]) -> Dict[str, Any]:
        self._stage = "setting the state"
        module = self._need().module
        tensors = self._take(request["values"], request["from"])
        if request["moved"] is not None:
            tensors = moving.moved(tensors, request["moved"], self._device.torch)
        calls.set_state(module, request["values"]["tree"], tensors)
        self._device.wait()
        return {}

    def _call(self, request: Dict[str, Any], descriptors: List[int]) -> Dict[str, Any]:
        loaded = self._need()
        self._stage = "copying inputs"
        described = request["values"]
        # The inputs of the last call are still held, so that the new ones lie elsewhere; unless what is remembered by an address is to be found out.
        inputs = self._take(described, request["from"], self._inputs if request.get("in_place") else ())
        self._inputs = inputs
        grads = self._take(request["grads"], request["grads_from"]) if request.get("grads") else None
        before = self._before if request.get("repeats") else None
        self._held.clear()
        self._before = None
        self._stage = "calling"
        arguments = values.unpack_arguments(described["tree"], inputs, self._types)
        call = calls.Call(self._function, loaded.module, self._device)
        self._returned.copy()
        flat, seen = call.make(arguments, inputs, request, grads, self._sizes, self._watch)
        seen["overwrites"] = self._returned.is_changed()
        self._returned.keep(flat["outputs"].tensors)
        region = self._regions.of(request["from"])
        changed = [place for place, (tensor, spec) in enumerate(zip(inputs, described["tensors"])) if values.differs(tensor, spec, region)]
        after = Flat()
        after.tree, after.tensors = described["tree"], inputs
        flat["inputs_after"] = after
        self._held = flat
        self._sizes = [spec["bytes"] for spec in flat["outputs"].specs()[0]]
        self._seed = request["seed"]
        reply: Dict[str, Any] = {name: part.values() for name, part in flat.items()}
        reply["seen"], reply["changed"] = seen, changed
        reply["repeated"] = before is not None and calls.are_same(before, flat["outputs"])
        if request.get("keep"):
            self._before = calls.copied(flat["outputs"])
        return reply

    def _oracle(self, request: Dict[str, Any], descriptors: List[int]) -> Dict[str, Any]:
        loaded = self._need()
        self._stage = "computing in float64"
        tensors = self._take(request["values"], request["from"])

        def build(moved: List[Any]) -> Tuple[Tuple[Any, ...], Dict[str, Any]]:
            return values.unpack_arguments(request["values"]["tree"], moved, self._types)

        result = oracle.compute(loaded.function, loaded.module, build, tensors, self._seed, self._device,
                                request.get("on_device"))
        return self._hold("oracle", values.flatten(result, "the output"))

    def _prepare(self, request: Dict[str, Any], _: List[int]) -> Dict[str, Any]:
        self._need()
        self._stage = "preparing to time"
        self._held.clear()
        self._inputs, self._last, self._before = [], None, None
        self._returned.keep([])
        self._device.release()
        self._sets = timing.Sets(request["l2_bytes"], self._device)
        return {}

    def _set(self, request: Dict[str, Any], descriptors: List[int]) -> Dict[str, Any]:
        self._stage = "preparing to time"
        if self._sets is None:
            raise Refused("nothing is prepared")
        self._sets.add(request["values"]["tree"], self._take(request["values"], request["from"]))
        return {}

    def _time(self, request: Dict[str, Any], _: List[int]) -> Dict[str, Any]:
        self._stage = "timing"
        if self._sets is None:
            raise Refused("nothing is prepared")
        reply, self._last = timing.run(self._function, self._sets, request, self._last, self._types, self._device)
        return reply

    def _last_output(self, _: Dict[str, Any], __: List[int]) -> Dict[str, Any]:
        self._stage = "fetching the last output"
        if self._last is None:
            raise Refused("no call was timed")
        return self._hold("last", self._last)

    def _compile(self, request: Dict[str, Any], _: List[int]) -> Dict[str, Any]:
        self._stage = "compiling"
        self._function = baseline.compiled(self._need().function, request["mode"])
        return {}

    def _profile(self, request: Dict[str, Any], _: List[int]) -> Dict[str, Any]:
        loaded = self._need()
        self._stage = "profiling"
        self._held.clear()
        self._inputs = self._take(request["values"], request["from"])
        tree = request["values"]["tree"]

        def arguments() -> Tuple[Tuple[Any, ...], Dict[str, Any]]:
            return values.unpack_arguments(tree, [own.clone(tensor) for tensor in self._inputs], self._types)

        profiling.run(self._function, loaded.module, arguments, request, self._device)
        return {}

    def _put(self, request: Dict[str, Any], descriptors: List[int]) -> Dict[str, Any]:
        """Writes values that were announced into the parent's region."""
        self._stage = "passing values on"
        flat = self._held.get(request["what"])
        if flat is None:
            raise Refused("there are no %s" % request["what"])
        flat.write(self._regions.of(request["to"]))
        self._device.wait()
        return {}


def serve(descriptor: int, device: str, leave: Callable[[], Any]) -> None:
    """Answers until the parent is gone, and then leaves."""
    process = own.getpid()
    faulthandler.enable(file=2, all_threads=False)
    loading.new_main()
    sys.argv[:] = [""]
    channel = Channel(descriptor)
    session = Session(device, channel)
    while True:
        try:
            received = channel.receive()
        except OSError:
            received = None
        if received is None:
            return leave()
        request, descriptors = received
        reply = session.answer(request, descriptors)
        if own.getpid() != process:
            # The person's code forked and came back here: the copy has no business with the channel.
            own.exit_now(0)
        reply["id"] = request.get("id")
        channel.send_or_die(reply)
