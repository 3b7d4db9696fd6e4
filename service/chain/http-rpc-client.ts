import { JsonRpcProvider, type JsonRpcPayload, type JsonRpcResult } from 'ethers';
import { retryIdempotent } from './retry-idempotent';

/** A provider over HTTP that repeats requests after connection failures. */
export class HttpRpcClient extends JsonRpcProvider {
  override _send(payload: JsonRpcPayload | JsonRpcPayload[]): Promise<JsonRpcResult[]> {
    return retryIdempotent(payload, () => super._send(payload));
  }
}
