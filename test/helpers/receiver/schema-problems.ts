import { Ajv2020 } from 'ajv/dist/2020';
import { EVENT_SCHEMAS } from '../../../receiver/event-schemas';

const ajv = new Ajv2020({
  allErrors: true,
  strict: true,
  // The patterns of the schemas say how these are written.
  formats: { uuid: true, 'date-time': (text: string) => !Number.isNaN(Date.parse(text)) },
});

/** How an event violates the schema of its type; undefined if it does not. */
export function schemaProblem(event: unknown): string | undefined {
  const { type } = (event ?? {}) as { type?: string };
  const schema = (EVENT_SCHEMAS as Record<string, object>)[String(type)];
  if (schema === undefined) return `there is no event type ${JSON.stringify(type)}`;
  return ajv.validate(schema, event) ? undefined : ajv.errorsText(ajv.errors, { dataVar: '' });
}
