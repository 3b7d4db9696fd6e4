import { readFile } from 'node:fs/promises';
import type { Middleware } from 'koa';
import { ConfigurationError, messageOf } from '../../base/errors';

/**
 * GET /.well-known/did.json: the file that `npx tdoc did` wrote. It is read for each request, so a rotated
 * key needs no restart.
 */
export function didDocument(path: string): Middleware {
  return async (ctx) => {
    ctx.body = await readDidDocument(path);
  };
}

async function readDidDocument(path: string): Promise<object> {
  try {
    const document: unknown = JSON.parse(await readFile(path, 'utf8'));
    if (typeof document === 'object' && document !== null) return document;
    throw new Error('it is not a JSON object');
  } catch (cause) {
    const remedy = 'Make it with `npx tdoc did`, or set DID_DOCUMENT_PATH.';
    const message = `The DID document ${path} cannot be read: ${messageOf(cause)}. ${remedy}`;
    throw new ConfigurationError('DID_DOCUMENT_UNREADABLE', message, { cause, remedy });
  }
}
