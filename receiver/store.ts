import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { mkdir, open, type FileHandle } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { dirname } from 'node:path';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';

/** A CloudEvent, with the members that the receiver uses. All others are kept unchanged. */
export interface StoredEvent {
  specversion: '1.0';
  id: string;
  source: string;
  type: string;
  /** The token's id in decimal digits, or 0 for events of the registry itself. Test events have none. */
  subject?: string;
  data: {
    /** With `logIndex` the pair that names a log. Test events and retractions have no pair. */
    transactionHash?: unknown;
    logIndex?: unknown;
    tokenId?: unknown;
    payload?: unknown;
    /** A retraction has the `id` of the event that a reorganisation of the chain took back. */
    retracts?: unknown;
    /** True in a test event. */
    test?: unknown;
  };
}

/** Options of the store. */
export interface StoreOptions {
  /** Whether the subscription has the option `retractions`. */
  retractions?: boolean | undefined;
  /**
   * Gets each event once it is stored, one after the other in the order of the file. An event that it rejects
   * comes again after a second, and so does one during which the process ended: it may get an event twice.
   */
  onEvent: (event: StoredEvent) => void | Promise<void>;
  /** Called for each damaged line of the file, and when `onEvent` fails. */
  onProblem?: ((problem: { reason: string }) => void) | undefined;
}

const AGAIN_AFTER_MS = 1_000;
const NEWLINE = 0x0a;
/** `{`, with which each line begins. */
const BRACE = 0x7b;
const TRANSACTION_HASH = /^0x[0-9a-f]{64}$/i;

/** Parses the bytes of an event. Undefined if they are none. */
export function parseEvent(bytes: Buffer): StoredEvent | undefined {
  try {
    const event = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)) as StoredEvent;
    const isNamed = [event.id, event.source, event.type].every(
      (text) => typeof text === 'string' && text !== '',
    );
    const isEvent = event.specversion === '1.0' && isNamed;
    return isEvent && typeof event.data === 'object' && event.data !== null ? event : undefined;
  } catch {
    return undefined;
  }
}

/**
 * The key of the rule of deduplication: the pair `transactionHash` + `logIndex` with its content; with
 * `retractions`, the event's `id`. After a reorganisation of the chain the pair alone can name another event.
 * An event that was retracted comes again with the same pair and content, under another id.
 */
export function dedupeKeyOf({ id, type, data }: StoredEvent, retractions = false): string {
  const { transactionHash, logIndex, tokenId, payload } = data;
  const isOfLog = typeof transactionHash === 'string' && TRANSACTION_HASH.test(transactionHash);
  if (retractions || !isOfLog || typeof logIndex !== 'number') return `id:${id}`;
  const content = createHash('sha256')
    .update(JSON.stringify([type, tokenId, payload]))
    .digest('base64url');
  return `${transactionHash.toLowerCase()}:${logIndex}:${content}`;
}

/** Marks the event that was handed on last, in a text of a fixed length. */
function markOf({ source, id }: StoredEvent): string {
  return createHash('sha256')
    .update(JSON.stringify([source, id]))
    .digest('base64url');
}

/** A line that is to be written. */
interface Waiting {
  event: StoredEvent;
  line: Buffer;
  stored: () => void;
  failed: (cause: unknown) => void;
}

/**
 * All events that arrived: an append-only file with one JSON line each, and an index that finds duplicates.
 * The file `<path>.position` marks the one that was handed on last. One store at a time has the file.
 */
export class EventStore {
  readonly #known = new Set<string>();
  readonly #arriving = new Map<string, Promise<void>>();
  /** Length of the file up to its last line that is safely on disk. */
  #size = 0;
  #isDirty = false;
  #waiting: Waiting[] = [];
  #writing: Promise<void> | undefined;
  #toHandOn: StoredEvent[] = [];
  #handingOn: Promise<void> | undefined;
  /** The event that was handed on last, and the write that marks it. */
  #last: StoredEvent | undefined;
  #saving: Promise<void> | undefined;
  readonly #closed = new AbortController();

  private constructor(
    private readonly path: string,
    private readonly files: { file: FileHandle; positionFile: FileHandle; lock: Server | undefined },
    private readonly options: StoreOptions,
  ) {}

  /**
   * Opens the file, reads its events, and hands on those that were not. If need be, it creates the file and
   * its folder, readable by their owner only. An incomplete last line is cut off: the process was killed
   * while it wrote the line, so the event was never acknowledged. A damaged line elsewhere stays and is
   * skipped.
   *
   * @throws Error if the file cannot be used, or another process uses it. The file is then unchanged.
   */
  static async open(path: string, options: StoreOptions): Promise<EventStore> {
    const file = await openFile(path, APPENDING);
    const opened: { close(): unknown }[] = [file];
    try {
      const lock = await lockFile(file, path);
      if (lock) opened.push(lock);
      const positionFile = await openFile(`${path}.position`, 0);
      opened.push(positionFile);
      const store = new EventStore(path, { file, positionFile, lock }, options);
      await store.#read();
      await syncFolder(dirname(path));
      store.#handOn();
      return store;
    } catch (error) {
      for (const one of opened) await one.close();
      throw error;
    }
  }

  /**
   * Stores an event unless it is there already. When this resolves, the event is on disk and survives a power
   * cut. When it rejects, the event is not stored and may be added again.
   */
  async add(event: StoredEvent): Promise<'stored' | 'duplicate'> {
    const key = dedupeKeyOf(event, this.options.retractions);
    if (this.#known.has(key)) return 'duplicate';
    const arriving = this.#arriving.get(key);
    if (arriving) {
      await arriving;
      return 'duplicate';
    }
    const line = Buffer.from(`${JSON.stringify(event)}\n`);
    const appended = new Promise<void>((stored, failed) => {
      this.#waiting.push({ event, line, stored, failed });
      this.#writing ??= this.#writeWaiting();
    });
    this.#arriving.set(key, appended);
    try {
      await appended;
      this.#known.add(key);
      return 'stored';
    } finally {
      this.#arriving.delete(key);
    }
  }

  /** Finishes writing, and the event that is being handed on, and closes the file. */
  async close(): Promise<void> {
    await this.#writing;
    this.#closed.abort();
    await this.#handingOn;
    await this.#saving;
    await this.files.file.close();
    await this.files.positionFile.close();
    this.files.lock?.close();
  }

  /** Reads the file, and mends its end. */
  async #read(): Promise<void> {
    const saved = await this.files.positionFile.readFile('utf8');
    let isAfter = saved === '';
    const { size, isWhole, rest, damaged } = await this.#scan((event) => {
      this.#known.add(dedupeKeyOf(event, this.options.retractions));
      if (isAfter) this.#toHandOn.push(event);
      if (markOf(event) !== saved) return;
      isAfter = true;
      this.#toHandOn = [];
    });
    // The marked event is not in the file any more: rather twice than never.
    if (!isAfter) await this.#scan((event) => this.#toHandOn.push(event));
    for (const line of damaged)
      this.#report(
        `Line ${line} of ${this.path} is damaged and was skipped. ` +
          'Stop the receiver before you correct or remove it.',
      );
    // An existing file would otherwise keep its mode.
    await this.files.file.chmod(0o600);
    this.#size = size;
    if (isWhole) {
      this.#size += rest;
      await this.#write(Buffer.from('\n'));
    } else await this.files.file.truncate(size);
    await this.files.file.sync();
  }

  /**
   * Reads the lines of the file.
   *
   * @returns the bytes of the whole lines; those of the rest, and whether it is an event, because an editor
   *   may leave the last newline out; the numbers of the damaged lines.
   * @throws Error if the file has lines or text, and no event.
   */
  async #scan(
    take: (event: StoredEvent) => void,
  ): Promise<{ size: number; rest: number; isWhole: boolean; damaged: number[] }> {
    let [rest, size, lines, events]: [Buffer, number, number, number] = [Buffer.alloc(0), 0, 0, 0];
    const damaged: number[] = [];
    const isEvent = (line: Buffer): boolean => {
      const event = parseEvent(line);
      if (event === undefined) return false;
      events += 1;
      take(event);
      return true;
    };
    const chunks = this.files.file.createReadStream({ start: 0, autoClose: false }) as AsyncIterable<Buffer>;
    for await (const chunk of chunks) {
      rest = Buffer.concat([rest, chunk]);
      for (let end = rest.indexOf(NEWLINE); end !== -1; end = rest.indexOf(NEWLINE)) {
        lines += 1;
        if (!isEvent(rest.subarray(0, end))) damaged.push(lines);
        rest = rest.subarray(end + 1);
        size += end + 1;
      }
    }
    const isWhole = rest.length > 0 && isEvent(rest);
    if (events === 0 && (lines > 0 || (rest.length > 0 && rest[0] !== BRACE)))
      throw new Error(
        `${this.path} is no file of received events. Set RECEIVER_EVENTS_FILE to another file.`,
      );
    return { size, rest: rest.length, isWhole, damaged };
  }

  /**
   * Writes one batch at a time. Lines that arrive during a write share the next one, because a sync costs the
   * same for many lines as for one.
   */
  async #writeWaiting(): Promise<void> {
    while (this.#waiting.length > 0) {
      const batch = this.#waiting;
      this.#waiting = [];
      try {
        await this.#write(Buffer.concat(batch.map(({ line }) => line)));
        for (const { event, stored } of batch) {
          this.#toHandOn.push(event);
          stored();
        }
        this.#handOn();
      } catch (cause) {
        // An event must not be stored before an earlier one of its token.
        [...batch, ...this.#waiting.splice(0)].forEach(({ failed }) => failed(cause));
      }
    }
    this.#writing = undefined;
  }

  async #write(bytes: Buffer): Promise<void> {
    // The remains of a failed write are removed first: a shorter line would leave the end of them in the
    // file.
    if (this.#isDirty) await this.files.file.truncate(this.#size);
    this.#isDirty = true;
    for (let done = 0; done < bytes.length;) {
      const { bytesWritten } = await this.files.file.write(
        bytes,
        done,
        bytes.length - done,
        this.#size + done,
      );
      done += bytesWritten;
    }
    await this.files.file.datasync();
    this.#isDirty = false;
    this.#size += bytes.length;
  }

  #handOn(): void {
    if (this.#toHandOn.length > 0) this.#handingOn ??= this.#handOnAll();
  }

  async #handOnAll(): Promise<void> {
    const { signal } = this.#closed;
    while (this.#toHandOn.length > 0 && !signal.aborted) {
      const events = this.#toHandOn;
      this.#toHandOn = [];
      for (const event of events) {
        // Deliveries are answered first, however many events wait.
        await nextTurn();
        while (!signal.aborted && !(await this.#isHandled(event)))
          await sleep(AGAIN_AFTER_MS, undefined, { signal }).catch(() => undefined);
        if (signal.aborted) break;
      }
    }
    this.#handingOn = undefined;
  }

  async #isHandled(event: StoredEvent): Promise<boolean> {
    try {
      await this.options.onEvent(event);
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause);
      this.#report(`Event ${event.id} is stored, and comes again, because its handling failed: ${reason}`);
      return false;
    }
    this.#last = event;
    this.#saving ??= this.#savePosition();
    return true;
  }

  /** Events that are handed on meanwhile share the next write. A lost write means that some come again. */
  async #savePosition(): Promise<void> {
    for (let saved: StoredEvent | undefined; saved !== this.#last && this.#last !== undefined;) {
      saved = this.#last;
      // The length is always the same, so the file is never cut before it is written.
      await this.files.positionFile
        .write(markOf(saved), 0)
        .catch((cause: Error) => this.#report(`${this.path}.position cannot be written: ${cause.message}`));
    }
    this.#saving = undefined;
  }

  #report(reason: string): void {
    this.options.onProblem?.({ reason });
  }
}

/**
 * Where no name can be locked, a second receiver then cannot overwrite lines of the first. Windows cannot cut
 * off the end of such a file.
 */
const APPENDING = process.platform === 'win32' ? 0 : constants.O_APPEND;

/** Opens a file for reading and writing. */
async function openFile(path: string, flags: number): Promise<FileHandle> {
  try {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    return await open(path, constants.O_RDWR | constants.O_CREAT | flags, 0o600);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    const remedy = 'Give the user of this process the file and its folder, or set RECEIVER_EVENTS_FILE.';
    throw new Error(`The events file ${path} cannot be written: ${reason}. ${remedy}`, { cause });
  }
}

/**
 * Takes a name that is made from the file's identity and that one process of the machine can have. The
 * operating system frees it when the process ends, also after SIGKILL. A lock file would remain, and Node.js
 * has no flock. Other systems than Linux and Windows have no such names: there, nothing is locked.
 */
async function lockFile(file: FileHandle, path: string): Promise<Server | undefined> {
  const prefix = { linux: '\0', win32: '\\\\.\\pipe\\' }[process.platform as string];
  if (prefix === undefined) return undefined;
  const { dev, ino } = await file.stat({ bigint: true });
  const lock = createServer((socket) => socket.destroy());
  return new Promise((resolve, reject) => {
    lock.once('error', (cause: NodeJS.ErrnoException) => {
      if (cause.code !== 'EADDRINUSE') return reject(cause);
      const remedy = 'Stop it, or set RECEIVER_EVENTS_FILE to another file.';
      reject(new Error(`Another receiver uses the events file ${path}. ${remedy}`, { cause }));
    });
    lock.listen(`${prefix}webhook-receiver-${dev}-${ino}`, () => resolve(lock));
  });
}

/**
 * The name of a new file is safe only once its folder is on disk too. Windows cannot open folders, and does
 * not need it.
 */
async function syncFolder(path: string): Promise<void> {
  if (process.platform === 'win32') return;
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
