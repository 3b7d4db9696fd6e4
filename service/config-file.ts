import { existsSync, readFileSync } from 'node:fs';
import { z } from 'zod';
import { ConfigurationError, messageOf } from './errors';

const milliseconds = z.number().int().positive();

const webhookSchema = z.strictObject({
  url: z.url({ protocol: /^https?$/ }).optional(),
  timeoutMs: milliseconds.optional(),
  retry: z
    .strictObject({ initialDelayMs: milliseconds.optional(), maxDelayMs: milliseconds.optional() })
    .optional(),
});

const configFileSchema = z.strictObject({ webhook: webhookSchema.optional() });

/** The `webhook` object of service.config.json, without its URL. All times in milliseconds; README.md has the defaults. */
export type WebhookOptions = Omit<z.infer<typeof webhookSchema>, 'url'>;

/** What service.config.json holds. */
export type ConfigFile = z.infer<typeof configFileSchema>;

/**
 * Reads service.config.json; an absent file is an empty one.
 *
 * @throws ConfigurationError that names the path inside the file. Unknown keys are errors: a misspelt one must not be ignored.
 */
export function readConfigFile(path: string): ConfigFile {
  if (!existsSync(path)) return {};
  let value: unknown;
  try {
    value = JSON.parse(readFileSync(path, 'utf8'));
  } catch (cause) {
    throw new ConfigurationError('CONFIGURATION_INVALID', `${path} cannot be read: ${messageOf(cause)}`, {
      cause,
    });
  }
  const parsed = configFileSchema.safeParse(value);
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map((issue) => `${issue.path.join('.') || '(top)'}: ${issue.message}`);
  throw new ConfigurationError('CONFIGURATION_INVALID', `${path}: ${problems.join('; ')}`);
}
