import type { Middleware } from 'koa';
import { EVENT_SCHEMAS } from '../../../client/events';
import { cacheable } from './cacheable';

/** Not longer, because a later version of the service may serve other schemas under the same names. */
const ONE_HOUR = 'public, max-age=3600';

/**
 * The answers under `/schemas`: the list of the schemas' URLs, and the JSON Schema of each event type.
 *
 * @param domain host of the URLs. If it is undefined, the schemas are named by their paths.
 */
export function eventSchemas(domain: string | undefined): {
  list: Middleware;
  schema: Middleware<object, { params: Record<string, string> }>;
} {
  const urlOf = (file: string): string =>
    domain === undefined ? `/schemas/${file}` : `https://${domain}/schemas/${file}`;
  const json = (value: object, mediaType: string): Middleware =>
    cacheable(Buffer.from(JSON.stringify(value)), mediaType, ONE_HOUR);
  const schemas = new Map(
    Object.entries(EVENT_SCHEMAS).map(([type, schema]): [string, Middleware] => {
      const file = `${type}.json`;
      const $schema = 'https://json-schema.org/draft/2020-12/schema';
      return [file, json({ $schema, $id: urlOf(file), title: type, ...schema }, 'application/schema+json')];
    }),
  );
  return {
    list: json([...schemas.keys()].map(urlOf), 'application/json'),
    async schema(ctx, next) {
      await schemas.get(ctx.params.file ?? '')?.(ctx, next);
    },
  };
}
