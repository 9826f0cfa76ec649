"""Results that calls return: messages of the API that print as short text, and as tables in notebooks."""
from __future__ import annotations

import html
from typing import Any, ClassVar

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from phimap import _result_text
from phimap.v1 import evaluation_service_pb2 as evaluation_pb
from phimap.v1 import mapping_pb2 as mapping_pb
from phimap.v1 import mapping_service_pb2 as service_pb

_NUMBERS = frozenset({
    FieldDescriptor.CPPTYPE_INT32, FieldDescriptor.CPPTYPE_INT64, FieldDescriptor.CPPTYPE_UINT32,
    FieldDescriptor.CPPTYPE_UINT64, FieldDescriptor.CPPTYPE_FLOAT, FieldDescriptor.CPPTYPE_DOUBLE})

__all__ = ["Advice", "Alias", "AliasDrift", "BuildJob", "Capabilities", "Capability", "Certificate", "Drift", "Evaluation", "Mapping", "Result",
           "Version", "result_of"]


class Result:
    """An immutable message. Its fields are attributes: a nested message is a Result, a repeated
    field a tuple, and a number that was not measured is None. A nested message that is absent, such
    as the kernel error of a mapping that approximates no kernel, is a Result that is false and whose
    numbers are None. Methods such as `HasField` and `SerializeToString` are the message's, and
    `message` is the message itself. `result == other` compares the content with that of a Result or
    a message. Can be pickled. Thread-safe.
    """

    __slots__ = ("_absent", "message")
    # The message's class, and the classes of results by the full name of their message.
    kind: ClassVar[Any] = None
    _kinds: ClassVar[dict[str, type[Result]]] = {}
    # Results are compared by content and, like messages, are not hashable.
    __hash__ = None  # type: ignore[assignment]

    message: Any
    # Whether the message that has this one as a field does not have it.
    _absent: bool

    def __init__(self, message: Any = None, **fields: Any) -> None:
        object.__setattr__(self, "message", self.kind(**fields) if message is None else message)
        object.__setattr__(self, "_absent", False)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        Result._kinds[cls.kind.DESCRIPTOR.full_name] = cls
        for enum in cls.kind.DESCRIPTOR.enum_types:
            for value in enum.values:
                setattr(cls, value.name, value.number)

    def __getattr__(self, name: str) -> Any:
        if name in Result.__slots__ or name.startswith("__"):  # `message` is not set yet while a Result is copied
            raise AttributeError(name)
        field = self.message.DESCRIPTOR.fields_by_name.get(name)
        value = getattr(self.message, name)
        if field is None:
            return value
        if field.label == FieldDescriptor.LABEL_REPEATED:
            return tuple(map(result_of, value))
        if _is_optional(field) and not self.message.HasField(name):
            return None
        if field.message_type is None:
            return None if self._absent and field.cpp_type in _NUMBERS else value
        nested = result_of(value)
        if isinstance(nested, Result) and (self._absent or not self.message.HasField(name)):
            object.__setattr__(nested, "_absent", True)
        return nested

    def __bool__(self) -> bool:
        return not self._absent

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{name}: a {type(self).__name__} is an answer of the server and cannot be changed")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.message.DESCRIPTOR.fields_by_name]

    def __eq__(self, other: object) -> bool:
        return bool(self.message == (other.message if isinstance(other, Result) else other))

    def __reduce__(self) -> Any:
        return _revived, (type(self.message), self.message.SerializeToString(), self._absent)

    def __repr__(self) -> str:
        return _result_text.line_of(self)

    def __str__(self) -> str:
        facts = _result_text.facts_of(self)
        if not facts:
            return repr(self)
        width = max(len(name) for name, _ in facts)
        return "\n".join([_result_text.title_of(self), *(f"  {name:{width}}  {value}" for name, value in facts)])

    def _repr_html_(self) -> str:
        facts = _result_text.facts_of(self) or [("", repr(self))]
        # Without colours: a notebook may be light or dark.
        cells = "".join(f'<tr><th style="text-align:left">{html.escape(name)}</th>'
                        f'<td style="text-align:left">{html.escape(value)}</td></tr>' for name, value in facts)
        return f"<table><caption>{html.escape(_result_text.title_of(self))}</caption>{cells}</table>"


class Version(Result):
    """One version of a mapping, with its certificate if the call returns one."""

    __slots__ = ()
    kind = mapping_pb.Version


class Certificate(Result):
    """Measurements of a version, made when it was built."""

    __slots__ = ()
    kind = mapping_pb.Certificate


class Evaluation(Result):
    """A learner's error on a version's features, and its margins."""

    __slots__ = ()
    kind = evaluation_pb.Evaluation


class Mapping(Result):
    """A mapping: its name, its aliases and how many versions it has."""

    __slots__ = ()
    kind = mapping_pb.Mapping


class Alias(Result):
    """A name for a version that can be moved."""

    __slots__ = ()
    kind = mapping_pb.Alias


class BuildJob(Result):
    """A build and its state."""

    __slots__ = ()
    kind = mapping_pb.BuildJob


class Advice(Result):
    """How many landmarks and dimensions suffice."""

    __slots__ = ()
    kind = service_pb.AdviseResponse


class Capabilities(Result):
    """The mappings, kernels, policies and learners of a server: tuples of Capability."""

    __slots__ = ()
    kind = service_pb.ListCapabilitiesResponse


class Drift(Result):
    """The evidence for drift of each alias of a mapping: a tuple `aliases` of AliasDrift."""

    __slots__ = ()
    kind = service_pb.GetDriftResponse


class AliasDrift(Result):
    """The test of the rows that an alias's version has served. Evidence of 1 and more is an alarm."""

    __slots__ = ()
    kind = service_pb.AliasDrift


class Capability(Result):
    """A mapping, kernel, policy or learner: its name in the texts of specs, a line of description, and its parameters."""

    __slots__ = ()
    kind = service_pb.Capability


def result_of(value: Any) -> Any:
    """Returns the Result of a message of the API. Returns anything else unchanged, including times
    and references to versions."""
    if not isinstance(value, Message) or isinstance(value, mapping_pb.VersionRef):
        return value
    if value.DESCRIPTOR.file.package != "phimap.v1":
        return value
    return Result._kinds.get(value.DESCRIPTOR.full_name, Result)(value)


def _is_optional(field: Any) -> bool:
    """Returns True if the field is a single value, not a message, and the message knows whether it
    is set."""
    return field.message_type is None and field.containing_oneof is not None


def _revived(kind: Any, content: bytes, absent: bool = False) -> Any:
    result = result_of(kind.FromString(content))
    object.__setattr__(result, "_absent", absent)
    return result
