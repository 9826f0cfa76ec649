"""The fields that Kubernetes objects and compose files in deploy/ may have: those that are used now, and some that
could well be used.

kubectl before 1.25 accepts unknown fields, and the Kubernetes server then drops them. Without this check, a
misspelled probe would silently have no effect.
"""

TEXT, NUMBER, SWITCH = (str,), (int,), (bool,)
QUANTITY = (str, int)
PORT = (str, int)


class Map:
    """Schema of a mapping with any keys. Its values have the schema `of`."""

    def __init__(self, of):
        self.of = of


LABELS = Map(TEXT)
METADATA = {"name": TEXT, "namespace": TEXT, "labels": LABELS, "annotations": LABELS}
SELECTOR = {"matchLabels": LABELS, "matchExpressions": [{"key": TEXT, "operator": TEXT, "values": [TEXT]}]}
PROBE = {"httpGet": {"path": TEXT, "port": PORT, "scheme": TEXT}, "initialDelaySeconds": NUMBER, "periodSeconds": NUMBER,
         "timeoutSeconds": NUMBER, "successThreshold": NUMBER, "failureThreshold": NUMBER}
KEY = {"name": TEXT, "key": TEXT, "optional": SWITCH}
ITEMS = [{"key": TEXT, "path": TEXT, "mode": NUMBER}]
CONTAINER = {
    "name": TEXT, "image": TEXT, "imagePullPolicy": TEXT, "command": [TEXT], "args": [TEXT],
    "env": [{"name": TEXT, "value": TEXT, "valueFrom": {"configMapKeyRef": KEY, "secretKeyRef": KEY}}],
    "ports": [{"name": TEXT, "containerPort": NUMBER, "protocol": TEXT}],
    "startupProbe": PROBE, "readinessProbe": PROBE, "livenessProbe": PROBE,
    "lifecycle": {"preStop": {"exec": {"command": [TEXT]}}},
    "resources": {"requests": Map(QUANTITY), "limits": Map(QUANTITY)},
    "securityContext": {"allowPrivilegeEscalation": SWITCH, "readOnlyRootFilesystem": SWITCH, "privileged": SWITCH,
                        "runAsNonRoot": SWITCH, "runAsUser": NUMBER, "runAsGroup": NUMBER,
                        "capabilities": {"drop": [TEXT], "add": [TEXT]}},
    "volumeMounts": [{"name": TEXT, "mountPath": TEXT, "readOnly": SWITCH}],
}
POD = {
    "metadata": METADATA,
    "spec": {
        "automountServiceAccountToken": SWITCH, "enableServiceLinks": SWITCH, "serviceAccountName": TEXT,
        "terminationGracePeriodSeconds": NUMBER, "nodeSelector": LABELS, "priorityClassName": TEXT,
        "securityContext": {"runAsNonRoot": SWITCH, "runAsUser": NUMBER, "runAsGroup": NUMBER, "fsGroup": NUMBER,
                            "fsGroupChangePolicy": TEXT, "seccompProfile": {"type": TEXT, "localhostProfile": TEXT}},
        "topologySpreadConstraints": [{"maxSkew": NUMBER, "topologyKey": TEXT, "whenUnsatisfiable": TEXT,
                                       "labelSelector": SELECTOR}],
        "initContainers": [CONTAINER], "containers": [CONTAINER],
        "volumes": [{"name": TEXT,
                     "emptyDir": {"medium": TEXT, "sizeLimit": QUANTITY},
                     "secret": {"secretName": TEXT, "defaultMode": NUMBER, "optional": SWITCH, "items": ITEMS},
                     "configMap": {"name": TEXT, "defaultMode": NUMBER, "optional": SWITCH, "items": ITEMS}}],
    },
}
METRIC_TARGET = {"type": TEXT, "averageValue": QUANTITY, "value": QUANTITY, "averageUtilization": NUMBER}
SCALING = {"stabilizationWindowSeconds": NUMBER, "selectPolicy": TEXT,
           "policies": [{"type": TEXT, "value": NUMBER, "periodSeconds": NUMBER}]}
PEER = [{"namespaceSelector": SELECTOR, "podSelector": SELECTOR, "ipBlock": {"cidr": TEXT, "except": [TEXT]}}]
PEER_PORTS = [{"protocol": TEXT, "port": PORT, "endPort": NUMBER}]

# {(apiVersion, kind): the fields of the object, except apiVersion, kind and metadata}.
KINDS = {
    ("apps/v1", "Deployment"): {"spec": {
        "replicas": NUMBER, "selector": SELECTOR, "minReadySeconds": NUMBER, "progressDeadlineSeconds": NUMBER,
        "revisionHistoryLimit": NUMBER, "template": POD,
        "strategy": {"type": TEXT, "rollingUpdate": {"maxSurge": PORT, "maxUnavailable": PORT}}}},
    ("v1", "Service"): {"spec": {
        "type": TEXT, "clusterIP": TEXT, "selector": LABELS, "publishNotReadyAddresses": SWITCH,
        "ports": [{"name": TEXT, "port": NUMBER, "targetPort": PORT, "protocol": TEXT, "appProtocol": TEXT}]}},
    ("v1", "ConfigMap"): {"data": Map(TEXT)},
    ("policy/v1", "PodDisruptionBudget"): {"spec": {
        "minAvailable": PORT, "maxUnavailable": PORT, "selector": SELECTOR}},
    ("autoscaling/v2", "HorizontalPodAutoscaler"): {"spec": {
        "scaleTargetRef": {"apiVersion": TEXT, "kind": TEXT, "name": TEXT},
        "minReplicas": NUMBER, "maxReplicas": NUMBER,
        "metrics": [{"type": TEXT,
                     "pods": {"metric": {"name": TEXT, "selector": SELECTOR}, "target": METRIC_TARGET},
                     "resource": {"name": TEXT, "target": METRIC_TARGET}}],
        "behavior": {"scaleUp": SCALING, "scaleDown": SCALING}}},
    ("networking.k8s.io/v1", "NetworkPolicy"): {"spec": {
        "podSelector": SELECTOR, "policyTypes": [TEXT],
        "ingress": [{"from": PEER, "ports": PEER_PORTS}], "egress": [{"to": PEER, "ports": PEER_PORTS}]}},
    ("monitoring.coreos.com/v1", "ServiceMonitor"): {"spec": {
        "jobLabel": TEXT, "selector": SELECTOR, "namespaceSelector": {"any": SWITCH, "matchNames": [TEXT]},
        "endpoints": [{"port": TEXT, "path": TEXT, "scheme": TEXT, "interval": TEXT, "scrapeTimeout": TEXT}]}},
    ("cert-manager.io/v1", "Certificate"): {"spec": {
        "secretName": TEXT, "dnsNames": [TEXT], "usages": [TEXT], "duration": TEXT, "renewBefore": TEXT,
        "privateKey": {"algorithm": TEXT, "size": NUMBER, "rotationPolicy": TEXT},
        "issuerRef": {"kind": TEXT, "name": TEXT, "group": TEXT}}},
}

# The allowed values of fields that have only a few possible values.
WORDS = {
    "protocol": {"TCP", "UDP"}, "scheme": {"HTTP", "HTTPS", "http", "https"}, "policyTypes": {"Ingress", "Egress"},
    "whenUnsatisfiable": {"ScheduleAnyway", "DoNotSchedule"}, "medium": {"", "Memory"},
    "topologyKey": {"kubernetes.io/hostname", "topology.kubernetes.io/zone"},
}

SERVICE = {
    "build": {"context": TEXT, "dockerfile": TEXT, "args": Map(TEXT)}, "image": TEXT, "command": [TEXT],
    "entrypoint": [TEXT], "environment": Map((str, int, bool)), "volumes": [TEXT], "ports": [TEXT], "user": TEXT,
    "networks": Map({"aliases": [TEXT]}), "secrets": [TEXT], "read_only": SWITCH, "tmpfs": [TEXT], "cap_drop": [TEXT],
    "cap_add": [TEXT], "security_opt": [TEXT], "stop_grace_period": TEXT, "stop_signal": TEXT, "restart": TEXT,
    "mem_limit": TEXT, "cpus": QUANTITY, "shm_size": TEXT,
    "healthcheck": {"test": [TEXT], "interval": TEXT, "timeout": TEXT, "retries": NUMBER, "start_period": TEXT},
    "depends_on": Map({"condition": TEXT, "restart": SWITCH}),
}
COMPOSE = {
    "name": TEXT, "services": Map(SERVICE), "networks": Map({"internal": SWITCH, "driver": TEXT}),
    "volumes": Map({"driver": TEXT}), "secrets": Map({"file": TEXT}),
}


def faults(value, schema, path=""):
    """Returns a text for each deviation of `value` from `schema`. The text begins with the path of the field."""
    if isinstance(schema, tuple):
        fits = type(value) in schema and (path.rpartition(".")[2].partition("[")[0] not in WORDS or
                                          value in WORDS[path.rpartition(".")[2].partition("[")[0]])
        return [] if fits else [f"{path}: {value!r} is not what it takes"]
    if isinstance(schema, list):
        if not isinstance(value, list):
            return [f"{path}: not a list"]
        return [fault for i, item in enumerate(value) for fault in faults(item, schema[0], f"{path}[{i}]")]
    if not isinstance(value, dict):
        # For compose, an empty value, as in `volumes: {data: }`, is an empty mapping.
        return [] if value is None and isinstance(schema, dict) else [f"{path}: not a mapping"]
    found = []
    for key, item in value.items():
        here = f"{path}.{key}" if path else key
        if isinstance(schema, Map):
            found += faults(item, schema.of, here)
        elif key in schema:
            found += faults(item, schema[key], here)
        else:
            found.append(f"{here}: there is no such field")
    return found


def object_faults(thing):
    """Returns the deviations of a Kubernetes object from its schema."""
    kind = (thing.get("apiVersion"), thing.get("kind"))
    if kind not in KINDS:
        return [f"{kind}: there is no such kind"]
    return faults(thing, {"apiVersion": TEXT, "kind": TEXT, "metadata": METADATA, **KINDS[kind]})


def compose_faults(document):
    """Returns the deviations of a compose file from its schema. Lists of services and networks are treated as
    mappings with empty values."""
    document = dict(document)
    document["services"] = {name: _long(service) for name, service in document.get("services", {}).items()}
    return faults(document, COMPOSE)


def _long(service):
    long = dict(service)
    for key in ("networks", "depends_on"):
        if isinstance(long.get(key), list):
            long[key] = {name: {} for name in long[key]}
    return long
