// The package comes without types: these are the parts that the project uses.

declare module 'jsonld' {
  /**
   * An event that safe mode refuses and other modes only report
   * (https://github.com/digitalbazaar/jsonld.js#events).
   */
  export interface JsonLdEvent {
    code: string;
    message?: string;
    details?: Record<string, unknown>;
  }
  interface Options {
    documentLoader: (url: string) => Promise<unknown>;
    contextResolver?: object;
    safe?: boolean;
  }
  export function expand(document: object, options: Options): Promise<Record<string, unknown>[]>;
}

// Internal to jsonld 9, and pinned to it by test/unit/cheaper-signing.test.ts.
declare module 'jsonld/lib/ContextResolver.js' {
  /** The terms that are defined at one place of a document. */
  export interface ActiveContext {
    mappings: Map<string, object | null>;
    protected: Record<string, boolean>;
    /** The context that applies again below a typed object. */
    previousContext?: ActiveContext;
    inverse: object | null;
    '@base'?: string | null;
    '@language'?: string;
    '@vocab'?: string;
    clone: (this: ActiveContext) => ActiveContext;
    getInverse: (this: ActiveContext) => object;
    revertToPreviousContext: (this: ActiveContext) => ActiveContext;
  }
  /** Includes the events of processing, which are raised again whenever the context is used. */
  export interface ProcessedContext {
    context: ActiveContext;
    events: JsonLdEvent[];
  }
  export interface ResolvedContext {
    document: object | null;
    cache: {
      get(active: ActiveContext): ProcessedContext | undefined;
      set(active: ActiveContext, processed: ProcessedContext): void;
    };
  }
  import type { JsonLdEvent } from 'jsonld';
  export default class ContextResolver {
    constructor(options: { sharedCache: Map<string, unknown> });
    resolve(options: object): Promise<ResolvedContext[]>;
  }
}
