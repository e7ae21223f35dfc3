import torch
from torch.utils.data import DataLoader
from transformers import AutoModelForSequenceClassification, AutoTokenizer, get_linear_schedule_with_warmup


def train(args, train_dataset):
    tokenizer = AutoTokenizer.from_pretrained(args.model_name)
    model = AutoModelForSequenceClassification.from_pretrained(args.model_name, num_labels=2)
    model.to(args.device)
    loader = DataLoader(train_dataset, batch_size=args.batch_size, shuffle=True, collate_fn=tokenizer.pad)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    scheduler = get_linear_schedule_with_warmup(optimizer, 100, len(loader) * args.epochs)
    for epoch in range(args.epochs):
        model.train()
        tr_loss = 0
        for batch in loader:
            batch = {k: v.to(args.device) for k, v in batch.items()}
            outputs = model(**batch)
            loss = outputs.loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
            tr_loss += outputs.loss  # expect: GPU101
        print("epoch %d train loss %.4f" % (epoch, tr_loss / len(loader)))
