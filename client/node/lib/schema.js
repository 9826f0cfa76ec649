// The messages and methods of the API, read from the .proto files that define them.
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import protobuf from 'protobufjs';

export const FILES = [
  'examples',
  'mapping',
  'mapping_service',
  'transform_service',
  'predict_service',
  'learning_service',
  'error_reason',
]
  .map((name) => `phimap/v1/${name}.proto`)
  .concat('phimap/rpc/error_details.proto');

// An installed package has the files in it (tools/copy_protos.js), a checkout has them in its own folder.
const folder = ['../proto/', '../../../proto/']
  .map((path) => fileURLToPath(new URL(path, import.meta.url)))
  .find((path) => existsSync(path + FILES[0]));
if (folder === undefined)
  throw new Error('phimap: the package is incomplete, its .proto files are missing: install it again');

/** Returns the root of all messages. `options` are protobufjs's for parsing. */
export function loadRoot(options) {
  const root = new protobuf.Root();
  root.resolvePath = (_, target) => folder + target;
  root.loadSync(FILES, options);
  root.resolveAll();
  return root;
}

const root = loadRoot();
export const typeOf = (name) => root.lookupType(name);
export const enumOf = (name) => root.lookupEnum(name);

/** A method: its service and name, its path, the types of its messages, and how these are written and read. */
class Method {
  constructor(service, name, request, answer) {
    this.service = service;
    this.name = name;
    this.path = `/${service}/${name}`;
    this.request = request;
    this.answer = answer;
    this.serialize = (message) => request.encode(message).finish();
    this.deserialize = (bytes) => answer.decode(bytes);
  }
}

/** The methods by name; no two services of the API have a method of the same name. */
export const METHODS = {};
for (const service of ['MappingService', 'TransformService', 'PredictService', 'LearningService']) {
  const found = root.lookupService(`phimap.v1.${service}`);
  for (const { name, resolvedRequestType, resolvedResponseType } of found.methodsArray.map((method) =>
    method.resolve(),
  )) {
    METHODS[name] = new Method(`phimap.v1.${service}`, name, resolvedRequestType, resolvedResponseType);
  }
}

// The standard health service, of which one call is used.
const health = root.define('grpc.health.v1');
health.add(new protobuf.Type('HealthCheckRequest').add(new protobuf.Field('service', 1, 'string')));
health.add(new protobuf.Type('HealthCheckResponse').add(new protobuf.Field('status', 1, 'int32')));
export const HEALTH = new Method(
  'grpc.health.v1.Health',
  'Check',
  health.lookupType('HealthCheckRequest'),
  health.lookupType('HealthCheckResponse'),
);
