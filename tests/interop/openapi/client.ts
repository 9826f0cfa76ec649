// A client in TypeScript whose types are made of the server's description: what is wrong in a call does not compile.
import createClient from 'openapi-fetch';
import type { components, paths } from './api.js';

type Schemas = components['schemas'];

/** An error of a call, with what a program looks at. */
export class CallError extends Error {
  readonly status: number;
  readonly reason: Schemas['ErrorReason'] | undefined;
  readonly fields: string[];

  constructor(status: number, error: Schemas['Status']) {
    super(error.message);
    this.status = status;
    this.fields = [];
    for (const detail of error.details) {
      if (detail['@type'] === 'type.googleapis.com/google.rpc.ErrorInfo') this.reason = detail.reason;
      if (detail['@type'] === 'type.googleapis.com/google.rpc.BadRequest') {
        for (const violation of detail.fieldViolations ?? []) this.fields.push(violation.field ?? '');
      }
    }
  }
}

function answerOf<Answer>(result: { data?: Answer; error?: Schemas['Status']; response: Response }): Answer {
  if (result.data === undefined) throw new CallError(result.response.status, result.error!);
  return result.data;
}

export class Mappings {
  readonly #client;

  constructor(baseUrl: string) {
    this.#client = createClient<paths, 'application/json'>({ baseUrl });
  }

  /** Returns all names, a page of one mapping at a time. */
  async names(): Promise<string[]> {
    const names: string[] = [];
    let token = '';
    do {
      const page = answerOf(
        await this.#client.GET('/v1/mappings', { params: { query: { page_size: 1, page_token: token } } }),
      );
      for (const mapping of page.mappings ?? []) names.push(mapping.name ?? '');
      token = page.next_page_token ?? '';
    } while (token !== '');
    return names;
  }

  async version(name: string, version: string): Promise<Schemas['Version']> {
    const path = { name, version };
    return answerOf(await this.#client.GET('/v1/mappings/{name}/versions/{version}', { params: { path } }));
  }

  async transform(reference: string, rows: number[][]): Promise<number[][]> {
    const answer = answerOf(
      await this.#client.POST('/v1/mappings/{reference}:transform', {
        params: { path: { reference }, header: { 'request-timeout': 30 } },
        body: { rows, residual: true },
      }),
    );
    if (answer.residuals?.length !== rows.length) throw new Error('a residual is missing');
    return answer.features ?? [];
  }

  async predict(reference: string, rows: number[][]): Promise<string[]> {
    const answer = answerOf(
      await this.#client.POST('/v1/mappings/{reference}:predict', {
        params: { path: { reference } },
        body: { rows, label_names: true },
      }),
    );
    return answer.label_names ?? [];
  }

  async setAlias(reference: string, alias: string): Promise<Schemas['Alias']> {
    return answerOf(
      await this.#client.POST('/v1/mappings/{reference}:setAlias', { params: { path: { reference } }, body: { alias } }),
    );
  }

  async estimate(name: string): Promise<bigint> {
    const answer = answerOf(
      await this.#client.POST('/v1/mappings/{spec.name}:estimate', {
        params: { path: { 'spec.name': name } },
        body: { spec: { spec: 'f2(landmarks=20)', kernel: 'rbf(gamma=0.1)' }, rows: 1000, columns: 5 },
      }),
    );
    return BigInt(answer.peak_memory_bytes ?? '0');
  }
}
