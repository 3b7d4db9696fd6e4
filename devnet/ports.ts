import { ServiceError } from '../service/base/errors';
import { freePort } from './free-port';

/** The ports of a devnet's programs. */
export interface Ports {
  service: number;
  node: number;
  receiver: number;
}

const PREFERRED: Ports = { service: 3000, node: 8545, receiver: 4000 };

/** Three free ports. */
export async function freePorts(): Promise<Ports> {
  const [service, node, receiver] = await Promise.all([freePort(0), freePort(0), freePort(0)]);
  return { service, node, receiver };
}

/**
 * This port for the service, and the two after it for the node and the receiver.
 *
 * @throws ServiceError PORT_TAKEN.
 */
export async function portsFrom(service: number): Promise<Ports> {
  return requireFree({ service, node: service + 1, receiver: service + 2 });
}

/** Gives back ports that are all free. @throws ServiceError PORT_TAKEN. */
export async function requireFree(ports: Ports): Promise<Ports> {
  for (const [name, port] of Object.entries(ports) as [string, number][]) {
    if ((await freePort(port)) === port) continue;
    const remedy = 'Stop the program that listens there, or choose another port.';
    throw new ServiceError('PORT_TAKEN', `Port ${port} of the ${name} is taken. ${remedy}`, { remedy });
  }
  return ports;
}

/** The usual ports, and free ones for those that are taken. */
export async function preferredPorts(say: (line: string) => void): Promise<Ports> {
  const ports = { ...PREFERRED };
  for (const name of ['node', 'service', 'receiver'] as const) {
    ports[name] = await freePort(PREFERRED[name]);
    if (ports[name] !== PREFERRED[name])
      say(`port ${PREFERRED[name]} is taken: the ${name} uses ${ports[name]}`);
  }
  return ports;
}
