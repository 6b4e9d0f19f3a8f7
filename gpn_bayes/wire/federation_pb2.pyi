from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ElementType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ELEMENT_TYPE_UNSPECIFIED: _ClassVar[ElementType]
    FLOAT64: _ClassVar[ElementType]
    INT64: _ClassVar[ElementType]
    UINT64: _ClassVar[ElementType]

class Reason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    REASON_UNSPECIFIED: _ClassVar[Reason]
    PLAN: _ClassVar[Reason]
    TABLE: _ClassVar[Reason]
    SUMMED_BEFORE: _ClassVar[Reason]
    KEYS: _ClassVar[Reason]
    TASK: _ClassVar[Reason]
    ANSWER: _ClassVar[Reason]
ELEMENT_TYPE_UNSPECIFIED: ElementType
FLOAT64: ElementType
INT64: ElementType
UINT64: ElementType
REASON_UNSPECIFIED: Reason
PLAN: Reason
TABLE: Reason
SUMMED_BEFORE: Reason
KEYS: Reason
TASK: Reason
ANSWER: Reason

class Array(_message.Message):
    __slots__ = ("name", "type", "shape", "data")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    name: str
    type: ElementType
    shape: _containers.RepeatedScalarFieldContainer[int]
    data: bytes
    def __init__(self, name: _Optional[str] = ..., type: _Optional[_Union[ElementType, str]] = ..., shape: _Optional[_Iterable[int]] = ..., data: _Optional[bytes] = ...) -> None: ...

class Poll(_message.Message):
    __slots__ = ("run", "keyed")
    RUN_FIELD_NUMBER: _ClassVar[int]
    KEYED_FIELD_NUMBER: _ClassVar[int]
    run: str
    keyed: bool
    def __init__(self, run: _Optional[str] = ..., keyed: _Optional[bool] = ...) -> None: ...

class Plan(_message.Message):
    __slots__ = ("run", "program", "settings", "variables", "clients", "secure")
    RUN_FIELD_NUMBER: _ClassVar[int]
    PROGRAM_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    VARIABLES_FIELD_NUMBER: _ClassVar[int]
    CLIENTS_FIELD_NUMBER: _ClassVar[int]
    SECURE_FIELD_NUMBER: _ClassVar[int]
    run: str
    program: str
    settings: str
    variables: _containers.RepeatedScalarFieldContainer[str]
    clients: _containers.RepeatedScalarFieldContainer[str]
    secure: bool
    def __init__(self, run: _Optional[str] = ..., program: _Optional[str] = ..., settings: _Optional[str] = ..., variables: _Optional[_Iterable[str]] = ..., clients: _Optional[_Iterable[str]] = ..., secure: _Optional[bool] = ...) -> None: ...

class Announcement(_message.Message):
    __slots__ = ("run", "client", "public_key", "signature", "certificate", "possession")
    RUN_FIELD_NUMBER: _ClassVar[int]
    CLIENT_FIELD_NUMBER: _ClassVar[int]
    PUBLIC_KEY_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    CERTIFICATE_FIELD_NUMBER: _ClassVar[int]
    POSSESSION_FIELD_NUMBER: _ClassVar[int]
    run: str
    client: str
    public_key: bytes
    signature: bytes
    certificate: bytes
    possession: bytes
    def __init__(self, run: _Optional[str] = ..., client: _Optional[str] = ..., public_key: _Optional[bytes] = ..., signature: _Optional[bytes] = ..., certificate: _Optional[bytes] = ..., possession: _Optional[bytes] = ...) -> None: ...

class Keys(_message.Message):
    __slots__ = ("run", "announcements")
    RUN_FIELD_NUMBER: _ClassVar[int]
    ANNOUNCEMENTS_FIELD_NUMBER: _ClassVar[int]
    run: str
    announcements: _containers.RepeatedCompositeFieldContainer[Announcement]
    def __init__(self, run: _Optional[str] = ..., announcements: _Optional[_Iterable[_Union[Announcement, _Mapping]]] = ...) -> None: ...

class Task(_message.Message):
    __slots__ = ("run", "round", "name", "values")
    RUN_FIELD_NUMBER: _ClassVar[int]
    ROUND_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    run: str
    round: int
    name: str
    values: _containers.RepeatedCompositeFieldContainer[Array]
    def __init__(self, run: _Optional[str] = ..., round: _Optional[int] = ..., name: _Optional[str] = ..., values: _Optional[_Iterable[_Union[Array, _Mapping]]] = ...) -> None: ...

class End(_message.Message):
    __slots__ = ("run", "finished", "reason")
    RUN_FIELD_NUMBER: _ClassVar[int]
    FINISHED_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    run: str
    finished: bool
    reason: str
    def __init__(self, run: _Optional[str] = ..., finished: _Optional[bool] = ..., reason: _Optional[str] = ...) -> None: ...

class Wait(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Instruction(_message.Message):
    __slots__ = ("wait", "plan", "keys", "task", "end")
    WAIT_FIELD_NUMBER: _ClassVar[int]
    PLAN_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    wait: Wait
    plan: Plan
    keys: Keys
    task: Task
    end: End
    def __init__(self, wait: _Optional[_Union[Wait, _Mapping]] = ..., plan: _Optional[_Union[Plan, _Mapping]] = ..., keys: _Optional[_Union[Keys, _Mapping]] = ..., task: _Optional[_Union[Task, _Mapping]] = ..., end: _Optional[_Union[End, _Mapping]] = ...) -> None: ...

class Answer(_message.Message):
    __slots__ = ("run", "round", "request", "values")
    RUN_FIELD_NUMBER: _ClassVar[int]
    ROUND_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    run: str
    round: int
    request: bytes
    values: _containers.RepeatedCompositeFieldContainer[Array]
    def __init__(self, run: _Optional[str] = ..., round: _Optional[int] = ..., request: _Optional[bytes] = ..., values: _Optional[_Iterable[_Union[Array, _Mapping]]] = ...) -> None: ...

class Refusal(_message.Message):
    __slots__ = ("run", "reason")
    RUN_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    run: str
    reason: Reason
    def __init__(self, run: _Optional[str] = ..., reason: _Optional[_Union[Reason, str]] = ...) -> None: ...

class Heartbeat(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Receipt(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
