"""Text of results: one line for each result, and the facts that its longer text and its table
show."""
from __future__ import annotations

import keyword
from collections.abc import Callable
from typing import Any

Facts = list[tuple[str, str]]

# Lists with more items are shown as a count.
_MOST_SHOWN = 6


def title_of(result: Any) -> str:
    return _titles.get(_kind(result), _kind)(result)


def facts_of(result: Any) -> Facts:
    """Returns the facts worth knowing about a result, by name; empty for a kind of result without
    such facts."""
    facts = _facts[_kind(result)](result) if result and _kind(result) in _facts else []
    return [(name, value) for name, value in facts if value]


def line_of(result: Any) -> str:
    """Returns text such as <Version letters@3: f2(…), rbf(…), 16 → 500 float32>."""
    kind = _kind(result)
    if not result:
        return f"<{kind}: absent>"
    if kind not in _lines:
        return _fields(result)
    return f"<{kind} {_lines[kind](result)}>".replace(" : ", ": ")


def prediction_line(prediction: Any) -> str:
    """Returns text such as <Prediction letters@3 of 3 rows: labels 'a', 'b', 'a', and probabilities>."""
    name, answers = ("values", prediction.values) if prediction.labels is None else ("labels", prediction.labels)
    shown = ", ".join(map(repr, answers[:_MOST_SHOWN].tolist())) + (" …" if len(answers) > _MOST_SHOWN else "")
    others = [other for other in ("scores", "probabilities", "sets", "intervals", "deviations")
              if getattr(prediction, other) is not None]
    with_them = f", and {', '.join(others)}" if others else ""
    version = reference(prediction.version)
    of = f"{version} of " if version else ""
    return f"<Prediction {of}{len(prediction):,} rows: {name} {shown}{with_them}>"


def reference(ref: Any) -> str:
    return f"{ref.name}@{ref.number}" if ref.name else ""


def number(value: float | None) -> str:
    """Returns an integer in full, any other number with three digits, and an empty text for
    None."""
    return "" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:.3g}"


def percent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.3g} %"


def _kind(result: Any) -> str:
    return type(result).__name__ if type(result).__name__ != "Result" else str(result.message.DESCRIPTOR.name)


def _fields(result: Any) -> str:
    """Text for any message: its numbers, also those that are 0, and what else is set, with long
    lists counted."""
    parts = []
    for field in result.message.DESCRIPTOR.fields:
        value = getattr(result, f"{field.name}_" if keyword.iskeyword(field.name) else field.name)
        if isinstance(value, tuple) and len(value) > _MOST_SHOWN:
            shown = f"<{len(value)} of them>"
        elif isinstance(value, bytes):
            shown = f"<{len(value)} bytes>"
        elif isinstance(value, (int, float)) or value:
            shown = repr(value)
        else:
            continue
        parts.append(f"{field.name}={' '.join(shown.split())}")
    return f"{_kind(result)}({', '.join(parts)})"


def _shape(version: Any) -> str:
    columns = f"{version.input_columns:,}" if version.input_columns else "texts"
    return f"{columns} → {version.output_columns:,} {version.serving_type}"


def _size(size_bytes: int) -> str:
    size = float(size_bytes)
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            break
        size /= 1024
    else:
        unit = "GiB"
    return f"{size:.4g} {unit}"


def _time(stamp: Any) -> str:
    return f"{stamp:%Y-%m-%d %H:%M:%S} UTC" if stamp else ""


def _lifetime(version: Any) -> str:
    """Returns how long a version lives; empty if it lives for ever."""
    if version.ttl is None:
        return ""
    until = f", so far until {_time(version.expire_time)}" if version.expire_time else ""
    return f"{version.ttl} after its last use{until}"


def _error(error: Any) -> str:
    return "" if not error else f"{number(error.mean)} mean, {number(error.max)} max, of at most {number(error.scale)}"


def _version_line(version: Any) -> str:
    head = f", {_head(version.head)}" if version.head else ""
    return f"{reference(version.ref)}: {version.spec_text} of {version.kernel_text}, {_shape(version)}{head}"


def _version_facts(version: Any) -> Facts:
    facts = [("spec", version.spec_text), ("kernel", version.kernel_text), ("columns", _shape(version)),
             *(_head_facts(version.head) if version.head else []), ("size", _size(version.artifact_size_bytes)), ("created", _time(version.create_time)),
             ("lives", _lifetime(version)), ("digest", version.ref.digest), ("imported", "yes" if version.imported else "")]
    if version.certificate:
        facts += _certificate_facts(version.certificate)
    return facts


def _head(head: Any) -> str:
    answers = f"{len(head.class_names):,} classes" if head.task == "classes" else head.task
    return f"{answers} by {head.learner}"


def _head_facts(head: Any) -> Facts:
    report = head.report
    classes, numbers = report.classes, report.numbers
    facts = [("head", _head(head))]
    if classes:
        facts += [("error", f"{_estimate(classes.error, percent, report.confidence)}: {classes.errors:,} of {classes.rows:,} test rows")]
    if numbers:
        facts += [("RMSE", f"{_estimate(numbers.rmse, number, report.confidence)}, {numbers.rows:,} test rows"),
                  ("R²", _estimate(numbers.r_squared, number, report.confidence) if numbers.r_squared else "")]
    return [*facts, *(("beside", f"{percent(one.error) if classes else number(one.error)} by {one.name}") for one in report.baselines),
            *(("note", note) for note in report.notes)]


def _estimate(estimate: Any, shown: Callable[[float | None], str], confidence: float) -> str:
    return f"{shown(estimate.value)} ({shown(estimate.low)} to {shown(estimate.high)} with confidence {confidence:g})"


def _verdict(certificate: Any) -> str:
    """Returns the server's verdict as the command line prints it; empty if the server gives none."""
    verdict = certificate.verdict
    return f"{verdict.grade or 'not judged'}: {verdict.reason}" if verdict else ""


def _certificate_line(certificate: Any) -> str:
    said = [f"of {certificate.stream_rows:,} rows"]
    said += [f"{name} {value}" for name, value in _certificate_facts(certificate)[5:9] if value]
    return ", ".join(said)


def _certificate_facts(certificate: Any) -> Facts:
    kept = f"{number(certificate.rank)} of {certificate.landmarks:,}" if certificate.rank is not None else ""
    return [("verdict", _verdict(certificate)), ("advice", certificate.verdict.advice), ("rows", number(certificate.stream_rows)), ("held out", number(certificate.held_out_rows)),
            ("landmarks", number(certificate.landmarks)), ("rank", kept),
            ("residual mass", percent(certificate.held_out_trace_residual)),
            ("kernel error", _error(certificate.kernel_error)),
            ("serving error", _error(certificate.serving_error)),
            ("policy", certificate.policy), ("theorem", " ".join(certificate.theorem.split())),
            *(("warning", warning) for warning in certificate.warnings)]


def _margin(certified: Any) -> str:
    coming = f", {number(certified.margin)} of rows to come" if (certified.margin or 0) > 0 else ""
    return f"at least {number(certified.rows_margin)} of all but {percent(certified.alpha)} of these rows{coming}"


def _evaluation_line(evaluation: Any) -> str:
    return (f"{reference(evaluation.version)}: error {percent(evaluation.error)}{_interval(evaluation)} "
            f"of {evaluation.tested_rows:,} tested rows, {evaluation.learner}")


def _interval(evaluation: Any) -> str:
    """Returns the interval of the error; an empty text if the server does not know it."""
    if evaluation.error_low is None or evaluation.error_high is None:
        return ""
    return f" ({percent(evaluation.error_low)} to {percent(evaluation.error_high)} with confidence {evaluation.confidence:g})"


def _evaluation_facts(evaluation: Any) -> Facts:
    split = f"{len(evaluation.folds)} folds" if len(evaluation.folds) > 1 else f"{percent(evaluation.held_out)} held out"
    median = evaluation.margin_quantiles[50] if evaluation.margin_quantiles else None
    certified = [item for item in evaluation.certified_margins if item.rows_margin > 0][:1]
    return [("learner", evaluation.learner), ("rows", f"{evaluation.rows:,}, {split}"),
            ("error", f"{percent(evaluation.error)}{_interval(evaluation)}: "
                      f"{evaluation.errors:,} of {evaluation.tested_rows:,} tested rows"),
            ("interval", evaluation.error_premise),
            ("classes", _classes(evaluation.classes)), ("margin", f"{number(median)} median" if median is not None else ""),
            *(("certified margin", _margin(item)) for item in certified),
            *(("warning", warning) for warning in evaluation.warnings)]


def _classes(classes: Any) -> str:
    shown = ", ".join(f"{one.label} ({one.rows:,})" for one in classes[:_MOST_SHOWN])
    return shown + (f" and {len(classes) - _MOST_SHOWN} more" if len(classes) > _MOST_SHOWN else "")


def _mapping_line(mapping: Any) -> str:
    aliases = "".join(f", {alias.name} is {alias.version}" for alias in mapping.aliases)
    return f"{mapping.name}: {mapping.version_count:,} versions, newest {mapping.newest_version}{aliases}"


def _alias_line(alias: Any) -> str:
    before = f", before {alias.previous_version}" if alias.previous_version else ""
    return f"{alias.name}: version {alias.version}{before}"


def _job_line(job: Any) -> str:
    done = f" {job.phase} {job.fraction:.0%}" if job.state == "computing" else ""
    result = f", {reference(job.version)}" if job.version else ""
    failed = f", {job.error_message}" if job.error_message else ""
    return f"{job.name} {job.build_id}: {job.state}{done}{result}{failed}"


def _advice_facts(advice: Any) -> Facts:
    lines = [(line.subject, f"{_counted(line.dimensions, 'dimensions')}{_counted(line.landmarks, 'landmarks')}"
              f"{line.source}, {line.tier}") for line in advice.lines if line.dimensions is not None]
    return [("to do", advice.to_do), ("proposal", advice.proposal), ("to measure", advice.to_measure),
            ("verdict", advice.verdict), *lines]


def _capabilities_facts(capabilities: Any) -> Facts:
    return [(kind, ", ".join(one.name for one in getattr(capabilities, kind)))
            for kind in ("families", "kernels", "policies", "learners")]


def _capability_facts(capability: Any) -> Facts:
    parameters = [(one.name, f"{_absent(one)}{one.expected}: {one.line}") for one in capability.parameters]
    return [("", capability.line), ("formula", capability.formula), ("kernels", capability.kernels), *parameters]


def _alias_drift_line(drift: Any) -> str:
    state = f"not tested, {drift.not_tested}" if drift.not_tested else f"evidence {number(drift.evidence)} of 1, {drift.rows:,} rows"
    return f"{drift.alias}: {state}"


def _drift_facts(drift: Any) -> Facts:
    return [(alias.alias, line_of(alias)) for alias in drift.aliases]


def _alias_drift_facts(drift: Any) -> Facts:
    shift = f"{percent(drift.shift / drift.shift_scale)} of the deviation of F" if drift.shift is not None and drift.shift_scale else ""
    return [("evidence", "" if drift.not_tested else f"{number(drift.evidence)} of 1"), ("not tested", drift.not_tested),
            ("rows", number(drift.rows)), ("shift", shift),
            ("beyond the range", percent(drift.beyond_range_share) if drift.counted_rows else "")]


def _absent(parameter: Any) -> str:
    return "required; " if parameter.required else f"{parameter.default_value}; " if parameter.default_value else ""


def _counted(count: int | None, noun: str) -> str:
    return "" if count is None else f"{count:,} {noun}, "


_lines: dict[str, Callable[[Any], str]] = {
    "Version": _version_line, "Certificate": _certificate_line, "Evaluation": _evaluation_line, "Mapping": _mapping_line,
    "Alias": _alias_line, "BuildJob": _job_line, "Advice": lambda advice: advice.to_do or advice.proposal or advice.verdict,
    "Capabilities": lambda all: ", ".join(f"{len(getattr(all, kind))} {kind}"
                                          for kind in ("families", "kernels", "policies", "learners")),
    "Capability": lambda one: f"{one.name}({', '.join(parameter.name for parameter in one.parameters)})",
    "Drift": lambda drift: ", ".join(_alias_drift_line(alias) for alias in drift.aliases), "AliasDrift": _alias_drift_line}
_facts: dict[str, Callable[[Any], Facts]] = {
    "Version": _version_facts, "Certificate": _certificate_facts, "Evaluation": _evaluation_facts, "Advice": _advice_facts,
    "Capabilities": _capabilities_facts, "Capability": _capability_facts, "Drift": _drift_facts,
    "AliasDrift": _alias_drift_facts}
_titles: dict[str, Callable[[Any], str]] = {
    "Version": lambda version: reference(version.ref),
    "Capability": lambda capability: capability.name,
    "Evaluation": lambda evaluation: f"Evaluation of {reference(evaluation.version)}"}
