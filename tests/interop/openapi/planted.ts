// Two calls that name a field wrongly, one in a request and one in an answer: neither may compile.
import createClient from 'openapi-fetch';
import type { paths } from './api.js';

const client = createClient<paths, 'application/json'>({ baseUrl: 'http://127.0.0.1' });
const path = { reference: 'letters' };

export const request = await client.POST('/v1/mappings/{reference}:transform', { params: { path }, body: { row: [[1]] } });

const answer = await client.GET('/v1/mappings');
export const names = answer.data?.mapping;
