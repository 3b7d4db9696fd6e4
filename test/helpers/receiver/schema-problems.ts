import { Ajv2020 } from 'ajv/dist/2020';
import { EVENT_SCHEMAS } from '../../../client/events';
import { addViolation } from '../violations';

const ajv = new Ajv2020({
  allErrors: true,
  strict: true,
  // Compiles in a third of the time. The test of the served schemas checks the schemas themselves.
  meta: false,
  validateSchema: false,
  code: { optimize: false },
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

/** Checks an event that a test received. The test fails at its end if the event violates its schema. */
export function checkEvent(event: unknown): void {
  const problem = schemaProblem(event);
  if (problem !== undefined) addViolation(`An event violates its schema: ${problem}`, event);
}
