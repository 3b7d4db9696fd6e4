import type { Middleware } from 'koa';
import { EVENT_SCHEMAS } from '../../../receiver/event-schemas';
import { cacheable } from './cacheable';

/** With or without a final slash. */
const LIST = '/schemas';

/** Not longer, because a later version of the service may serve other schemas under the same names. */
const ONE_HOUR = 'public, max-age=3600';

/**
 * The paths under `/schemas/`: a list of the schemas' URLs, and the JSON Schema of each event type.
 *
 * @param domain host of the URLs. If it is undefined, the schemas are named by their paths.
 */
export function eventSchemas(domain: string | undefined): [path: string, answer: Middleware][] {
  const urlOf = (path: string): string => (domain === undefined ? path : `https://${domain}${path}`);
  const schemas = Object.entries(EVENT_SCHEMAS).map(([type, schema]): [string, object] => {
    const path = `${LIST}/${type}.json`;
    const $schema = 'https://json-schema.org/draft/2020-12/schema';
    return [path, { $schema, $id: urlOf(path), title: type, ...schema }];
  });
  const json = (value: object, mediaType: string): Middleware =>
    cacheable(Buffer.from(JSON.stringify(value)), mediaType, ONE_HOUR);
  return [
    [
      LIST,
      json(
        schemas.map(([path]) => urlOf(path)),
        'application/json',
      ),
    ],
    ...schemas.map(([path, schema]): [string, Middleware] => [path, json(schema, 'application/schema+json')]),
  ];
}
