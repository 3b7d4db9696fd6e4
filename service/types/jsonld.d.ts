// The package comes without types: these are the parts that the project uses.

declare module 'jsonld' {
  /** What safe mode refuses, and other modes only tell (https://github.com/digitalbazaar/jsonld.js#events). */
  export interface JsonLdEvent {
    code: string;
    level: string;
    message?: string;
    details?: Record<string, unknown>;
  }
  interface Options {
    documentLoader: (url: string) => Promise<unknown>;
    safe?: boolean;
    eventHandler?: (handled: { event: JsonLdEvent }) => void;
  }
  export function expand(document: object, options: Options): Promise<Record<string, unknown>[]>;
  export function toRDF(document: object, options: Options): Promise<object[]>;
  export function canonize(document: object, options: Options & { algorithm: 'RDFC-1.0' }): Promise<string>;
}
