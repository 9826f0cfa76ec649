// The client: one method for each call of the API. The types (index.d.ts) describe each.
import { randomUUID } from 'node:crypto';
import { exportTo, importFrom } from './artifact_calls.js';
import { build, evaluate } from './build_calls.js';
import { columnNamesHash } from './column_names.js';
import { CallOptions, Connection } from './connection.js';
import { FailedPrecondition, NotFound } from './errors.js';
import { Labels } from './labels.js';
import { countOf, seedField } from './numbers.js';
import {
  buildAndHeadOrder,
  buildOrder,
  buildSpec,
  checkWithoutSpec,
  durationOf,
  headOrder,
  timestampOf,
  tuningOrder,
} from './orders.js';
import { byDigest, elsewhere, explained, nowhere, referenceTo } from './pins.js';
import { PredictCall } from './predict.js';
import { resultOf } from './results.js';
import { RowCalls } from './row_calls.js';
import { METHODS } from './schema.js';
import { TransformCall } from './transform.js';

export class Client {
  #connection;
  #rowCalls;

  constructor(server, options = {}) {
    this.#connection = new Connection({ server, ...options });
    this.#rowCalls = new RowCalls(this.#connection);
  }

  get server() {
    return this.#connection.server;
  }

  close() {
    this.#connection.close();
  }

  // Building.

  async build(name, rows, options = {}) {
    return resultOf(await build(this.#connection, buildOrder(name, options), rows, options));
  }

  async estimateBuild(name, rows, columns, options = {}) {
    return this.#call(
      'EstimateBuild',
      { spec: buildSpec(name, options, ''), rows: countOf('rows', rows), columns: countOf('columns', columns) },
      options,
    );
  }

  async getBuild(name, buildId, options) {
    return this.#call('GetBuild', { name, buildId }, options);
  }

  async cancelBuild(name, buildId, options) {
    return this.#call('CancelBuild', { name, buildId }, options);
  }

  async listBuilds(name = '', options = {}) {
    return this.#pages('ListBuilds', { name }, 'builds', options);
  }

  // Transforming.

  async transform(reference, rows, options = {}) {
    return this.#rowCalls.map(new TransformCall(options), reference, rows, options);
  }

  transformStream(reference, rows, options = {}) {
    return this.#rowCalls.stream(new TransformCall(options), reference, rows, options);
  }

  // Learning and predicting.

  async evaluate(reference, rows, labels, options = {}) {
    const { learner = '', heldOut = 0, folds = 0, seed = 0, confidence = 0.95, expectedDigest, columnNames } = options;
    const target = this.#connection.pins.resolve(reference, expectedDigest);
    const spec = {
      reference: target.reference,
      learner,
      heldOut,
      folds,
      seed: seedField(seed),
      confidence,
      expectedDigest: target.expectedDigest,
      columnNamesHash: columnNamesHash(columnNames),
    };
    return resultOf(await evaluate(this.#connection, spec, new Labels(labels), rows, options));
  }

  async train(reference, rows, labels, options = {}) {
    if (options.spec !== undefined)
      return resultOf(await build(this.#connection, buildAndHeadOrder(reference, labels, options), rows, options));
    checkWithoutSpec(options);
    const { ref } = await this.getVersion(reference, { signal: options.signal });
    const version = { reference: referenceTo(ref), expectedDigest: options.expectedDigest ?? ref.digest };
    return resultOf(await build(this.#connection, headOrder(ref.name, version, labels, options), rows, options));
  }

  async tune(name, rows, labels, options = {}) {
    return resultOf(await build(this.#connection, tuningOrder(name, labels, options), rows, options));
  }

  async predict(reference, rows, options = {}) {
    return this.#rowCalls.map(new PredictCall(options), reference, rows, options);
  }

  predictStream(reference, rows, options = {}) {
    return this.#rowCalls.stream(new PredictCall(options), reference, rows, options);
  }

  unpin(name) {
    this.#connection.pins.forget(name);
  }

  get pinned() {
    return this.#connection.pins.pinned();
  }

  // Finding.

  async listMappings(options = {}) {
    return this.#pages('ListMappings', {}, 'mappings', options);
  }

  async getMapping(name, options) {
    return this.#call('GetMapping', { name }, options);
  }

  async listVersions(name, options = {}) {
    return this.#pages('ListVersions', { name }, 'versions', options);
  }

  async getVersion(reference, options) {
    const target = this.#connection.pins.resolve(reference);
    let found;
    try {
      found = await this.#call('GetVersion', { reference: target.reference }, options);
    } catch (error) {
      const other = elsewhere(target.reference, target.expectedDigest, error);
      if (other === null) throw explained(error, target);
      try {
        return await this.#call('GetVersion', { reference: other }, options);
      } catch (second) {
        throw nowhere(second) ? explained(error, target) : second;
      }
    }
    if (target.expectedDigest === '' || target.expectedDigest === found.ref.digest) return found;
    // Another version has the pinned number.
    return this.#call('GetVersion', { reference: byDigest(target.reference, target.expectedDigest) }, options);
  }

  async listCapabilities(options) {
    return this.#call('ListCapabilities', {}, options);
  }

  async getDrift(name, options) {
    return this.#call('GetDrift', { name }, options);
  }

  async listAuditEntries({ name = '', principal, startTime, endTime, ...options } = {}) {
    const request = { name, principal, startTime: timestampOf('startTime', startTime), endTime: timestampOf('endTime', endTime) };
    return this.#pages('ListAuditEntries', request, 'entries', options);
  }

  async checkHealth(service = '', options = {}) {
    return this.#connection.serves(service, new CallOptions(options));
  }

  async advise(
    { margin, error, confidence, alpha = 0, points = 0, classes = 0, distortion = 0, kernelError = 0 },
    options,
  ) {
    const request = {
      margin,
      error,
      confidence,
      alpha,
      points: countOf('points', points),
      classes: countOf('classes', classes),
      distortion,
      kernelError,
    };
    return this.#call('Advise', request, options);
  }

  // Managing.

  async setAlias(reference, alias, { etag = '', ...options } = {}) {
    return this.#change('SetAlias', { reference, alias, etag }, options);
  }

  async rollBackAlias(name, alias, options = {}) {
    const mapping = await this.getMapping(name, options);
    const current = mapping.aliases.find((each) => each.name === alias);
    if (current === undefined) throw new NotFound(`mapping "${name}" has no alias "${alias}"`);
    if (current.previousVersion === 0) {
      throw new FailedPrecondition(
        `${name}@${alias} has pointed at version ${current.version} since it was made; there is no previous version`,
      );
    }
    return this.setAlias(`${name}@${current.previousVersion}`, alias, { ...options, etag: current.etag });
  }

  async keepVersion(reference, { ttlMs, ...options } = {}) {
    const ttl = durationOf('ttlMs', ttlMs);
    const { ref } = await this.getVersion(reference, options);
    return this.#change('KeepVersion', { reference: referenceTo(ref), ttl }, options);
  }

  async deleteAlias(name, alias, { etag = '', ...options } = {}) {
    await this.#change('DeleteAlias', { name, alias, etag }, options);
  }

  async deleteVersion(reference, { giveUpRollback = false, ...options } = {}) {
    await this.#change('DeleteVersion', { reference, giveUpRollback }, options);
    this.unpin(reference);
  }

  async deleteMapping(name, { onlyIfEmpty = false, ...options } = {}) {
    await this.#change('DeleteMapping', { name, onlyIfEmpty }, options);
    this.unpin(name);
  }

  async export(reference, file, options = {}) {
    const { ref } = await this.getVersion(reference, { signal: options.signal });
    await exportTo(this.#connection, referenceTo(ref), ref.digest, file, options);
    return ref;
  }

  async import(name, file, options = {}) {
    return resultOf(await importFrom(this.#connection, name, file, options));
  }

  async #call(name, request, options) {
    return resultOf(await this.#connection.call(METHODS[name], request, new CallOptions(options)));
  }

  // A change carries an id of its own, so that the store makes it once, however often it is sent.
  async #change(name, request, options) {
    return this.#call(name, { ...request, operationId: randomUUID() }, options);
  }

  async #pages(name, request, field, options) {
    return (await this.#connection.pages(METHODS[name], request, field, new CallOptions(options))).map(resultOf);
  }
}
