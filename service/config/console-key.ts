import { wrong } from './setting-types';
import { settingOf, type Settings } from './settings';

/** CONSOLE_READ_KEY: it lets its holders look at the console, which exists only with ADMIN_API_KEY. */
export function consoleReadKeyOf(settings: Settings): string | undefined {
  const readKey = settingOf(settings, 'CONSOLE_READ_KEY');
  const adminApiKey = settingOf(settings, 'ADMIN_API_KEY');
  if (readKey === undefined) return undefined;
  if (adminApiKey === undefined)
    throw wrong('CONSOLE_READ_KEY', 'is set, but there is no console', 'Set ADMIN_API_KEY too, or unset it.');
  if (readKey === adminApiKey)
    throw wrong(
      'CONSOLE_READ_KEY',
      'is the same as ADMIN_API_KEY',
      'Choose another: it must change nothing.',
    );
  if (readKey === settingOf(settings, 'API_KEY'))
    throw wrong('CONSOLE_READ_KEY', 'is the same as API_KEY', 'Choose another: it must change nothing.');
  return readKey;
}
