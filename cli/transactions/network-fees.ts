import { readFees, type FeeReading, type TransactionFees } from '../../service/chain/fees';
import { createGasStation } from '../../service/chain/gas-station';
import type { Network } from '../../service/chain/networks';
import { messageOf } from '../../service/base/errors';
import { secretsOf } from '../../service/config/secrets';
import { secretMasker } from '../../service/base/mask-secrets';
import { gasStationUrlOf, type Settings } from '../../service/config/settings';

/**
 * The fees for a command's transactions: those of the network's gas station, or the node's with a warning on
 * standard error.
 *
 * @throws the errors of readFees.
 */
export function readNetworkFees(
  network: Network,
  settings: Settings,
  readNode: FeeReading['readNode'],
): Promise<TransactionFees> {
  const stationUrl = gasStationUrlOf(network, settings);
  const mask = secretMasker(secretsOf(settings));
  return readFees({
    gasPricing: network.gasPricing,
    readStation: stationUrl === undefined ? undefined : createGasStation(stationUrl),
    readNode,
    // Standard output may be JSON for a program.
    warn: (message, cause) => console.error(`warning: ${message} (${mask(messageOf(cause))}).`),
  });
}
